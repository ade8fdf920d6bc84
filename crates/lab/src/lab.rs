//! The means of every experiment: servers, load and samples, and what is written down of them.

use std::{collections::BTreeMap, env, io, path::PathBuf, thread, time::Duration};

use serde_json::{Value, json};

use crate::{
    experiment::Stop,
    load::{Load, Prepared},
    record::{Sample, ServerUse, StageUse, Who},
    sampler::Reading,
    servers::{DOMAIN, Features, Server, Servers},
};

/// What an experiment works with.
pub(crate) struct Lab {
    /// In a smaller size: shows that it works, under ten seconds or so.
    pub(crate) quick: bool,
    /// Runs of each point.
    pub(crate) repeats: u32,
    pub(crate) servers: Servers,
    /// Who takes part, in the order in which they take turns.
    who: Vec<Who>,
    program: PathBuf,
    /// Searches for the highest rate that were made in this run.
    pub(crate) searches: Vec<(Who, Plan, Sample)>,
    /// Runs that the load itself limited.
    limited_by_load: Vec<String>,
    warnings: Vec<String>,
    commands: Vec<String>,
}

/// One point of an experiment: a server's features, a load, and what of it is varied.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) features: Features,
    pub(crate) load: Load,
    at: BTreeMap<String, f64>,
    of: BTreeMap<String, String>,
}

impl Plan {
    /// A load against servers that ask for no credentials.
    pub(crate) fn new(load: Load) -> Self {
        Self {
            features: Features::default(),
            load,
            at: BTreeMap::new(),
            of: BTreeMap::new(),
        }
    }

    pub(crate) fn features(mut self, features: Features) -> Self {
        self.features = features;
        self
    }

    /// What is varied, as the sample has it: `at("rate", 1000.0)`.
    pub(crate) fn at(mut self, name: &str, value: f64) -> Self {
        self.at.insert(name.to_owned(), value);
        self
    }

    /// What is varied and no number: `of("transport", "tcp")`.
    pub(crate) fn of(mut self, name: &str, value: &str) -> Self {
        self.of.insert(name.to_owned(), value.to_owned());
        self
    }
}

impl Plan {
    /// The load with what is the same in every run.
    pub(crate) fn load_for(&self, who: Who) -> Load {
        let digest = self.features.digest && who != Who::Echo;
        let digest = if digest { "answer" } else { "none" };
        let load = self.load.clone();
        load.with(&format!("--domain {DOMAIN} --digest {digest}"))
    }

    /// Whether another asks the same of a server, whatever it is varied in.
    pub(crate) fn is_same_work(&self, other: &Self) -> bool {
        self.features == other.features && self.load == other.load
    }

    /// Whether a sample is a run of this plan.
    pub(crate) fn is_of(&self, sample: &Sample) -> bool {
        self.at == sample.at && self.of == sample.of
    }

    /// What came of a run of it.
    pub(crate) fn sample(&self, who: Who, repeat: u32, load: Value, server: ServerUse) -> Sample {
        Sample {
            who,
            at: self.at.clone(),
            of: self.of.clone(),
            repeat,
            load,
            server,
        }
    }
}

/// The figures of a step under the names that those of a whole run have.
fn of_step(step: &Value) -> Value {
    let mut figures = step.clone();
    figures["operations_per_second"] = step["achieved_per_second"].clone();
    figures["latency_us"] = json!({"p50": step["p50_us"], "p99": step["p99_us"]});
    figures
}

/// Work that a server does behind its answers belongs to the operations counted.
const SETTLE: Duration = Duration::from_millis(50);

impl Lab {
    /// # Errors
    /// This program has no path.
    pub(crate) fn new(
        servers: Servers,
        who: Vec<Who>,
        repeats: u32,
        quick: bool,
    ) -> io::Result<Self> {
        Ok(Self {
            quick,
            repeats,
            servers,
            who,
            program: env::current_exe()?,
            searches: Vec::new(),
            limited_by_load: Vec::new(),
            warnings: Vec::new(),
            commands: Vec::new(),
        })
    }

    /// Who takes part, in the order in which they take turns.
    pub(crate) fn who(&self) -> Vec<Who> {
        self.who.clone()
    }

    /// Those of them that are SIP servers.
    pub(crate) fn sip_servers(&self) -> Vec<Who> {
        let sip = self.who.iter().filter(|who| **who != Who::Echo);
        sip.copied().collect()
    }

    /// One of two values: the second in the smaller size.
    pub(crate) fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Says what the reader of the result must know. Once each.
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.warnings.contains(&text) {
            eprintln!("  warning: {text}");
            self.warnings.push(text);
        }
    }

    /// Keeps a command for the record. Once each.
    pub(crate) fn command(&mut self, typed: String) {
        if !self.commands.contains(&typed) {
            self.commands.push(typed);
        }
    }

    /// A line for the person who waits.
    pub(crate) fn progress(&self, text: &str) {
        eprintln!("  {text}");
    }

    /// What was warned of and done since the last call: for one record.
    pub(crate) fn take_notes(&mut self) -> (Vec<String>, Vec<String>) {
        if let Some(first) = self.limited_by_load.first() {
            let text = format!(
                "the load and not the server was the bottleneck in {} runs (their samples say why), the first: {first}",
                self.limited_by_load.len()
            );
            self.limited_by_load.clear();
            self.warn(text);
        }
        (
            std::mem::take(&mut self.warnings),
            std::mem::take(&mut self.commands),
        )
    }

    /// Starts a server and waits until it answers. It ends when it is dropped.
    ///
    /// # Errors
    /// It can't be started, or does not answer.
    pub(crate) fn start(&mut self, who: Who, features: Features) -> Result<Server, Stop> {
        let server = self.servers.start(who, features)?;
        self.command(server.command.clone());
        Ok(server)
    }

    /// Starts a load against a server, up to the point where it can begin.
    ///
    /// # Errors
    /// It can't run, or is not ready in its time.
    pub(crate) fn prepare(&mut self, server: &Server, load: &Load) -> Result<Prepared, Stop> {
        self.command(load.typed(server.port));
        load.prepare(&self.program, server.port).map_err(Stop::Fail)
    }

    /// Runs one point once: starts the server, puts the load on it, reads what it used.
    ///
    /// # Errors
    /// Server or load can't run. Operations that fail are no error here: they are in the sample.
    pub(crate) fn measure(&mut self, who: Who, plan: &Plan, repeat: u32) -> Result<Sample, Stop> {
        let server = self.start(who, plan.features)?;
        let idle = Reading::of(&server);
        let mut load = self.prepare(&server, &plan.load_for(who))?;
        let stages = server.stages()?;
        let begin = Reading::of(&server);
        load.begin().map_err(Stop::Fail)?;
        let busy = load.wait_while_it_begins();
        let busy = busy.map(|()| Reading::of(&server).busy_percent(&begin));
        load.wait().map_err(Stop::Fail)?;
        thread::sleep(SETTLE);
        let end = Reading::of(&server);
        let mut used = end.since(&begin);
        used.stages = since(&server.stages()?, &stages);
        used.busy_percent = busy.unwrap_or(used.busy_percent);
        // With the connections that were opened in preparation.
        used.slab_bytes = end.slab_since(&idle);
        let load = load.finish().map_err(Stop::Fail)?;
        let sample = plan.sample(who, repeat, load, used);
        self.note(&sample);
        Ok(sample)
    }

    /// Runs a point at one rate after the other, each for `seconds`, against one server; a sample
    /// each, with the rate as `at("rate")`. What a rate leaves behind the next one finds: not for overload.
    ///
    /// # Errors
    /// As [`measure`](Self::measure), and when the load does not tell its steps apart.
    pub(crate) fn sweep(
        &mut self,
        who: Who,
        plan: &Plan,
        (rates, seconds): (&[f64], f64),
        repeat: u32,
    ) -> Result<Vec<Sample>, Stop> {
        let words: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
        let load = plan
            .load_for(who)
            .with(&format!("--rate {}", words.join(",")));
        let load = load.lasting(seconds * rates.len() as f64);
        let server = self.start(who, plan.features)?;
        let mut load = self.prepare(&server, &load)?;
        let mut readings = vec![Reading::of(&server)];
        load.begin().map_err(Stop::Fail)?;
        for step in 1..=rates.len() {
            load.wait_until(seconds * step as f64);
            readings.push(Reading::of(&server));
        }
        load.wait().map_err(Stop::Fail)?;
        let load = load.finish().map_err(Stop::Fail)?;
        let steps = load.get("steps").and_then(Value::as_array);
        let steps = steps.filter(|steps| steps.len() == rates.len());
        let steps = steps.ok_or_else(|| Stop::Fail("sipolis load gave no steps".to_owned()))?;
        let mut samples = Vec::new();
        for ((step, rate), pair) in steps.iter().zip(rates).zip(readings.windows(2)) {
            let plan = plan.clone().at("rate", *rate);
            let used = pair[1].since(&pair[0]);
            let sample = plan.sample(who, repeat, of_step(step), used);
            self.note(&sample);
            samples.push(sample);
        }
        Ok(samples)
    }

    /// Shows what a run found, and remembers where it is not the server's figure.
    fn note(&mut self, sample: &Sample) {
        self.progress(&sample.line());
        let limited = sample.load.get("bottleneck").and_then(Value::as_str);
        if limited.is_some_and(|why| !why.is_empty()) {
            self.limited_by_load.push(sample.varied());
        }
    }

    /// Runs points against servers in turn, and all again as often as is asked for.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub(crate) fn measure_all(&mut self, who: &[Who], plans: &[Plan]) -> Result<Vec<Sample>, Stop> {
        let mut samples = Vec::new();
        for repeat in 0..self.repeats {
            for plan in plans {
                for who in who {
                    samples.push(self.measure(*who, plan, repeat)?);
                }
            }
        }
        Ok(samples)
    }
}

/// What was spent between two looks.
fn since(now: &[StageUse], before: &[StageUse]) -> Vec<StageUse> {
    let spent = |(now, before): (&StageUse, &StageUse)| StageUse {
        name: now.name.clone(),
        calls: now.calls.saturating_sub(before.calls),
        nanoseconds: now.nanoseconds.saturating_sub(before.nanoseconds),
    };
    now.iter().zip(before).map(spent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_read_as_a_run_is() {
        let step = json!({"rate": 100.0, "achieved_per_second": 99.0, "operations": 50, "p50_us": 3, "p99_us": 9});
        let plan = Plan::new(Load::new("register", "udp"));
        let sample = plan.sample(Who::Echo, 0, of_step(&step), ServerUse::default());
        assert_eq!(sample.figure("operations_per_second"), Some(99.0));
        assert_eq!(sample.figure("latency_us.p99"), Some(9.0));
        assert_eq!(sample.cpu_us_per_operation(), Some(0.0));
    }
}
