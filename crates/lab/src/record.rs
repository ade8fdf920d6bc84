//! What is kept of an experiment. Everything the report says is made from this.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// One experiment's run: `docs/lab/data/NAME.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) machine: Machine,
    /// In a smaller size: shows that it works, and no figure of it counts.
    pub(crate) quick: bool,
    /// Repeats of each point.
    pub(crate) repeats: u32,
    /// Seconds since 1970 at its begin.
    pub(crate) at: u64,
    pub(crate) seconds: f64,
    /// What this machine could not give, and what the reader must know.
    pub(crate) warnings: Vec<String>,
    /// Every command, as it can be typed, in order, each once.
    pub(crate) commands: Vec<String>,
    pub(crate) outcome: Outcome,
}

/// Where it ran.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: u64,
    pub(crate) kernel: String,
    /// Version and allocator; `not installed`.
    pub(crate) kamailio: String,
    /// Commit of the tree and its date.
    pub(crate) commit: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Measured(Measured),
    /// Not done here; says why and what would change it.
    Skipped(String),
    Failed(String),
}

/// What came out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) charts: Vec<Chart>,
    pub(crate) tables: Vec<Table>,
    pub(crate) findings: Vec<Finding>,
    /// What the report's table of ratios gets from it.
    #[serde(default)]
    pub(crate) ratios: Vec<Ratio>,
    /// The raw samples that charts and tables were made from.
    pub(crate) samples: Vec<Sample>,
}

/// Who a curve or sample is of. Each has one colour in all pictures.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Who {
    Echo,
    Kamailio,
    Sipolis,
    /// The published figure: a reference, measured on other hardware.
    #[value(skip)]
    Paper,
}

impl Who {
    /// As people read it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Kamailio => "Kamailio",
            Self::Sipolis => "sipolis",
            Self::Paper => "paper",
        }
    }
}

/// A picture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Chart {
    /// Unique within the experiment; part of a file's name.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) data: Data,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Data {
    /// Curves over a number.
    Lines(Vec<Curve>),
    /// Groups of bars; each bar may be stacked of several parts (user, kernel; stages).
    Bars(Vec<Group>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Axis {
    /// With its unit: `response time, ms`.
    pub(crate) label: String,
    pub(crate) log: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Curve {
    pub(crate) who: Who,
    /// What tells it from the other curves of the same: `UDP`, `persistent TCP`.
    pub(crate) label: String,
    pub(crate) points: Vec<Point>,
}

/// Median of the repeats, and their spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Point {
    #[serde(deserialize_with = "number")]
    pub(crate) x: f64,
    #[serde(deserialize_with = "number")]
    pub(crate) y: f64,
    #[serde(deserialize_with = "number")]
    pub(crate) low: f64,
    #[serde(deserialize_with = "number")]
    pub(crate) high: f64,
}

/// JSON has no such thing as not a number: it is written as null.
fn number<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// Bars that stand together, under one name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) label: String,
    pub(crate) bars: Vec<Bar>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Bar {
    pub(crate) who: Who,
    pub(crate) label: String,
    /// From the bottom up; one for a plain bar. `label` of a part: `user`, `kernel`, a stage.
    pub(crate) parts: Vec<BarPart>,
    /// Spread of the whole; equal to it when measured once.
    #[serde(deserialize_with = "number")]
    pub(crate) low: f64,
    #[serde(deserialize_with = "number")]
    pub(crate) high: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BarPart {
    pub(crate) label: String,
    #[serde(deserialize_with = "number")]
    pub(crate) value: f64,
}

/// A table; the first column names the row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// One figure divided by another of the same server: what can be held against a paper of other hardware.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ratio {
    /// `REGISTER/s over persistent TCP / over UDP`.
    pub(crate) label: String,
    /// By server, and what the paper has; 1.0 is equal. Those not measured are left out.
    #[serde(deserialize_with = "numbers")]
    pub(crate) of: BTreeMap<Who, f64>,
}

/// Those that are none are left out.
fn numbers<'a, D: Deserializer<'a>>(from: D) -> Result<BTreeMap<Who, f64>, D::Error> {
    let all = BTreeMap::<Who, Option<f64>>::deserialize(from)?.into_iter();
    Ok(all.filter_map(|(who, value)| Some((who, value?))).collect())
}

/// One line of what was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// What the paper says: `persistent TCP reaches 77 % of UDP`.
    pub(crate) paper: String,
    /// What was found here.
    pub(crate) here: String,
    pub(crate) agrees: Agreement,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Agreement {
    Yes,
    Partly,
    No,
    /// The paper has no such figure, or it can't be held against this one.
    NotComparable,
}

/// One run of a load against a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) who: Who,
    /// What was varied: `{"rate": 1000, "connections": 100}`.
    pub(crate) at: BTreeMap<String, f64>,
    /// What was varied that is no number: `{"transport": "tcp", "lifetime": "transaction"}`.
    pub(crate) of: BTreeMap<String, String>,
    /// Which repeat, from 0.
    pub(crate) repeat: u32,
    /// What the load generator printed with `--json`, histograms left out.
    pub(crate) load: serde_json::Value,
    pub(crate) server: ServerUse,
}

/// What the server used in the meantime.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ServerUse {
    /// Processor time, microseconds, in all.
    pub(crate) cpu_us: f64,
    /// The part of it in user space.
    pub(crate) user_us: f64,
    /// Share of its core, percent.
    pub(crate) busy_percent: f64,
    /// Memory of all its processes at the end, shared pages counted once, pages of program files not.
    pub(crate) memory_bytes: u64,
    /// Growth of the kernel's slab caches of the whole machine, by cache; those that grew by more than nothing.
    pub(crate) slab_bytes: BTreeMap<String, i64>,
    /// TCP sockets of the whole machine, and those in TIME_WAIT.
    pub(crate) tcp_sockets: u64,
    pub(crate) tcp_time_wait: u64,
    /// Kernel memory of TCP buffers, bytes.
    pub(crate) tcp_buffer_bytes: u64,
    /// From the processor's counter; `None` where it can't be read.
    pub(crate) joules: Option<f64>,
    /// Stages of its work, in the order in which a message goes through them; only of a server that was asked to measure them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stages: Vec<StageUse>,
}

/// What was spent in one stage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct StageUse {
    /// As `sipolis status --json` has it; `disk`: answers that waited for the journal, which is no processor time.
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) nanoseconds: u64,
}
