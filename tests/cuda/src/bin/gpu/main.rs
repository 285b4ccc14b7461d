//! The checks and figures of a GPU: `ci/gpu.sh` runs this on a machine that has one, and on the driver for tests as its
//! twin (`--test-driver`), so that it is known to work before.
//!
//! Exit status 0 if all was right, 1 if not, 77 if there is no GPU. The last lines are `name value`.

mod checks;
mod copies;
mod figures;
mod machine;

use std::process::ExitCode;

use machine::Machine;

fn main() -> ExitCode {
    let on_test_driver = std::env::args().any(|argument| argument == "--test-driver");
    let machine = match Machine::find(on_test_driver) {
        Ok(machine) => machine,
        Err(why) => {
            println!("skipped: the checks on a GPU, {why}");
            return ExitCode::from(77);
        }
    };
    println!("device: {}", machine.name());
    let mut failed = 0;
    for (name, check) in checks::ALL {
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&machine))) {
            Ok(()) => println!("ok: {name}"),
            Err(_) => {
                println!("FAILED: {name}");
                failed += 1;
            }
        }
    }
    if failed > 0 {
        return ExitCode::FAILURE;
    }
    let mut figures = figures::measure(&machine);
    figures.extend(copies::measure(&machine));
    // Arrays that are alive when the process ends, in a static and in a thread-local (C16).
    checks::leave_alive(&machine);
    // With its account of what is alive, which would be right to complain.
    std::mem::forget(machine);
    println!("checks_passed {}", checks::ALL.len());
    for (name, value) in figures {
        println!("{name} {value}");
    }
    ExitCode::SUCCESS
}
