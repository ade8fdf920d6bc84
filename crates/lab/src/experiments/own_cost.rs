//! What the load generator itself costs, beside the server that it loads.

use crate::{
    chart::decimals,
    experiment::{Experiment, Stop},
    lab::{Lab, Plan},
    lifetime::Lifetime,
    record::{Agreement, Axis, Bar, Chart, Finding, Group, Measured, Ratio, Sample, Table, Who},
    sample::median,
    servers::Features,
};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "own-cost",
    title: "The load generator's own time per operation, beside the server's",
    paper: "No paper says what its load generator costs; a load on one core can only saturate a server on another \
            if it costs less",
    how: "Every scenario over every transport in a closed loop against sipolis; user-space and kernel time of both sides. \
          The aim: the load's user-space time is at most half of the server's. The kernel tells user time from its own by \
          what runs at its clock's ticks, every 10 ms: where a side is mostly idle its user time is uncertain.",
    run,
};

const SCENARIOS: [(&str, &str, bool); 7] = [
    ("OPTIONS", "options", false),
    ("NOTIFY", "notify", false),
    ("REGISTER", "register", false),
    ("REGISTER with digest", "register", true),
    ("MESSAGE", "message", false),
    ("call", "call", false),
    ("call with digest", "call", true),
];
/// A connection each is measured with REGISTER alone: what it adds is the same for all.
const LIFETIMES: [Lifetime; 3] = [Lifetime::UDP, Lifetime::PERSISTENT, Lifetime::TRANSACTION];
/// Of the server's user-space time.
const AIM: f64 = 0.5;

fn run(lab: &mut Lab) -> Result<Measured, Stop> {
    let plans = plans(lab);
    let samples = lab.measure_all(&[Who::Sipolis], &plans)?;
    let costs: Vec<Cost> = plans.iter().map(|plan| Cost::of(plan, &samples)).collect();
    Ok(Measured {
        charts: charts(&costs),
        tables: vec![table(&costs)],
        findings: vec![finding(&costs)],
        ratios: ratios(&costs),
        samples,
    })
}

fn plans(lab: &Lab) -> Vec<Plan> {
    let seconds = lab.size(1.5, 0.2);
    let mut plans = Vec::new();
    for (label, scenario, digest) in SCENARIOS {
        for lifetime in LIFETIMES {
            if lifetime == Lifetime::TRANSACTION && label != "REGISTER" {
                continue;
            }
            let features = Features {
                digest,
                ..Features::default()
            };
            let mut plan = lifetime
                .plan(scenario)
                .of("scenario", label)
                .features(features);
            plan.load = plan
                .load
                .with("--outstanding 100 --warm-up 2000")
                .lasting(seconds);
            plans.push(plan);
        }
    }
    plans
}

/// Times of one operation, microseconds: medians over the repeats.
struct Cost {
    label: String,
    server_user: f64,
    server_kernel: f64,
    load_user: f64,
    load_kernel: f64,
}

impl Cost {
    fn of(plan: &Plan, samples: &[Sample]) -> Self {
        let of: Vec<&Sample> = samples.iter().filter(|s| plan.is_of(s)).collect();
        let middle = |y: &dyn Fn(&Sample) -> Option<f64>| {
            median(of.iter().filter_map(|s| y(s))).unwrap_or(f64::NAN)
        };
        let server = middle(&Sample::cpu_us_per_operation);
        let server_user = middle(&Sample::user_us_per_operation);
        let load = middle(&|s| s.figure("driver_us_per_operation"));
        let load_user = middle(&|s| s.figure("driver_user_us_per_operation"));
        let first = of.first();
        Self {
            label: first.map_or_else(String::new, |s| {
                format!("{}, {}", s.of("scenario"), s.of("lifetime"))
            }),
            server_user,
            server_kernel: server - server_user,
            load_user,
            load_kernel: load - load_user,
        }
    }

    fn ratio(&self) -> f64 {
        self.load_user / self.server_user
    }
}

fn charts(costs: &[Cost]) -> Vec<Chart> {
    let group = |cost: &Cost| {
        let bar = |label: &str, user, kernel| Bar {
            label: label.to_owned(),
            ..Bar::stacked(Who::Sipolis, &[("user", user), ("kernel", kernel)])
        };
        let server = bar("server", cost.server_user, cost.server_kernel);
        Group::new(
            &cost.label,
            [server, bar("load", cost.load_user, cost.load_kernel)],
        )
    };
    vec![Chart::bars(
        "cost",
        "Processor time of an operation: server and load",
        Axis::linear("microseconds"),
        costs.iter().map(group).collect(),
    )]
}

fn table(costs: &[Cost]) -> Table {
    let columns = [
        "operation",
        "server user us",
        "server kernel us",
        "load user us",
        "load kernel us",
        "load / server, user",
    ];
    let row = |cost: &Cost| {
        let times = [
            cost.server_user,
            cost.server_kernel,
            cost.load_user,
            cost.load_kernel,
            cost.ratio(),
        ];
        let times = times.map(|time| decimals(time, 2));
        [cost.label.clone()].into_iter().chain(times).collect()
    };
    Table {
        title: "Processor time of an operation, microseconds".to_owned(),
        columns: columns.map(String::from).to_vec(),
        rows: costs.iter().map(row).collect(),
    }
}

fn ratios(costs: &[Cost]) -> Vec<Ratio> {
    let ratio = |cost: &Cost| {
        let label = format!("{}: user time of the load / of the server", cost.label);
        Ratio::new(&label, [(Who::Sipolis, cost.ratio())])
    };
    costs.iter().map(ratio).collect()
}

fn finding(costs: &[Cost]) -> Finding {
    let costs: Vec<&Cost> = costs
        .iter()
        .filter(|cost| cost.ratio().is_finite())
        .collect();
    let worst = costs.iter().max_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let below = costs.iter().filter(|cost| cost.ratio() <= AIM).count();
    let here = worst.map_or_else(
        || "nothing measured".to_owned(),
        |worst| {
            format!(
                "{below} of {} rows are at most half; the highest is {:.0} % ({})",
                costs.len(),
                100.0 * worst.ratio(),
                worst.label
            )
        },
    );
    Finding::new(
        "no paper has it; the aim is that the load's user-space time is at most half of the server's",
        here,
        Agreement::of(costs.iter().map(|cost| cost.ratio() <= AIM)),
    )
}
