//! What the benches share: criterion as they use it, and the last lines that they print.
#![allow(dead_code, reason = "each bench uses a part")]

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use criterion::Criterion;

/// `BENCH_SHORT=1` sees only that it runs.
pub fn criterion() -> Criterion {
    let short = env::var_os("BENCH_SHORT").is_some();
    Criterion::default()
        .warm_up_time(Duration::from_millis(if short { 100 } else { 1000 }))
        .measurement_time(Duration::from_millis(if short { 300 } else { 3000 }))
        .sample_size(if short { 20 } else { 100 })
        .without_plots()
        .configure_from_args()
}

/// Prints the ratio of the medians that criterion has just written.
pub fn print_ratio(group: &str, side: &str, peer: &str, theirs_over_ours: bool) {
    if let (Some(ours), Some(theirs)) = (median(group, side), median(group, peer)) {
        let ratio = if theirs_over_ours { theirs / ours } else { ours / theirs };
        println!("{group}{}_vs_{peer} {ratio:.2}", side.trim_start_matches("ours"));
    }
}

/// `None` if a filter on the command line left the benchmark out.
pub fn median(group: &str, side: &str) -> Option<f64> {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target")), PathBuf::from);
    let file = target.join("criterion").join(group).join(side).join("new").join("estimates.json");
    let estimates: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()?;
    estimates["median"]["point_estimate"].as_f64()
}
