//! What holds for every run. `cargo run --release -p sim` runs more seeds; these are few, since tests are built without optimization.

use sim::{Plan, Stats, run};

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [1, 5, 90] {
        let plan = Plan::new(seed, Some(20));
        let (first, second) = (run(&plan, false), run(&plan, false));
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert_eq!(first.stats, second.stats, "seed {seed}");
    }
}

#[test]
fn another_seed_is_another_run() {
    let run = |seed| run(&Plan::new(seed, Some(20)), false).hash;
    assert_ne!(run(1), run(2));
}

#[test]
fn nothing_goes_wrong_that_the_weather_does_not_explain() {
    let mut total = Stats::default();
    for seed in 0..20 {
        let outcome = run(&Plan::new(seed, Some(30)), false);
        assert!(
            outcome.faults.is_empty(),
            "{:#?}\nreplay: cargo run --release -p sim -- --seed {seed} --phones 30 --trace",
            outcome.faults
        );
        total.add(&outcome.stats);
    }
    // Of runs in which nothing happens nothing could go wrong.
    assert!(total.calls_answered > 500, "{total:?}");
    assert!(total.calls_refused > 500, "{total:?}");
    assert!(total.registered > 500, "{total:?}");
    assert!(total.lost > 500, "{total:?}");
    assert!(total.handed_over > 500, "{total:?}");
    assert!(total.bindings_recovered > 100, "{total:?}");
}

#[test]
fn in_fair_weather_nothing_needs_an_excuse() {
    let mut fair = 0;
    for seed in 0..40 {
        let plan = Plan::new(seed, Some(20));
        if plan.is_fair() {
            let outcome = run(&plan, false);
            assert_eq!(
                (outcome.stats.excused, outcome.faults),
                (0, Vec::new()),
                "seed {seed}"
            );
            fair += 1;
        }
    }
    assert!(fair > 3, "{fair}");
}
