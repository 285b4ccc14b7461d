//! What the benches share: criterion, long or short, and what it has written.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use criterion::Criterion;

/// Short where the environment has `BENCH_SHORT`: then it only shows that it runs.
pub fn criterion() -> Criterion {
    let short = env::var_os("BENCH_SHORT").is_some();
    Criterion::default()
        .warm_up_time(Duration::from_millis(if short { 100 } else { 1000 }))
        .measurement_time(Duration::from_millis(if short { 300 } else { 3000 }))
        .sample_size(if short { 20 } else { 100 })
        .without_plots()
        .configure_from_args()
}

/// The median that criterion has just written, in nanoseconds; `None` if a filter on the command line left the benchmark
/// out.
pub fn median(group: &str, side: &str) -> Option<f64> {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target")), PathBuf::from);
    let file = target.join("criterion").join(group).join(side).join("new").join("estimates.json");
    let estimates: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()?;
    estimates["median"]["point_estimate"].as_f64()
}
