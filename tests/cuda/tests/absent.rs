//! A machine without a CUDA driver (C8). And arrays that are alive when a process ends (C16).

use std::process::Command;

use arrow_device_abi_support::skip;

fn output(program: &str) -> (Option<i32>, String, String) {
    let output = Command::new(program).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// C8: what needs no waiting needs no driver, the rest is an error, and nothing panics. `ci/cuda.sh` runs the same
/// program with `panic = "abort"`.
#[test]
fn without_a_driver() {
    let (code, said, complaint) = output(env!("CARGO_BIN_EXE_absent"));
    if code == Some(77) {
        return skip("a machine without a CUDA driver", "this one has one");
    }
    assert_eq!((code, complaint.as_str()), (Some(0), ""), "{said}");
    assert_eq!(
        said,
        "no event: ready\non the CPU: ready\nan event: there is no CUDA driver on this machine\n"
    );
}

/// C16: arrays with events in statics and thread-locals, of the main thread and of one that is cut short, and after
/// `main`: the process ends as ever.
#[test]
fn arrays_that_are_alive_at_exit() {
    let (code, said, complaint) = output(env!("CARGO_BIN_EXE_at_exit"));
    if code == Some(77) {
        return skip("arrays alive at exit", "there is no CUDA driver for tests");
    }
    assert_eq!((code, complaint.as_str()), (Some(0), ""), "{said}");
    assert_eq!(said, "3 arrays alive\n");
}
