//! Faults for ci/sanitizers.sh: what finds nothing here would find nothing anywhere.

#[test]
fn leak() {
    std::mem::forget(std::hint::black_box(vec![1u8; 999]));
}

#[test]
fn race() {
    static mut N: usize = 0;
    // SAFETY: none. Two threads write to one integer.
    let add = || (0..1000).for_each(|_| unsafe { N += 1 });
    let threads = [std::thread::spawn(add), std::thread::spawn(add)];
    for thread in threads {
        thread.join().unwrap();
    }
}
