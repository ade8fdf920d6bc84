//! What came of a run, for a person.

use std::fmt::{self, Write as _};

use crate::{
    Failures,
    summary::{Latency, Part, Responses, Step, Summary},
    words::{Paint, counted, grouped, rate, share, time},
};

impl Failures {
    /// Each cause as the JSON has it, and how often.
    pub(crate) fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("timeout", self.timeout),
            ("refused", self.refused),
            ("unreachable", self.unreachable),
            ("connection_lost", self.connection_lost),
            ("credentials", self.credentials),
            ("response", self.response),
            ("rubbish", self.rubbish),
            ("local", self.local),
            ("not_begun", self.not_begun),
            ("gave_up", self.gave_up),
        ]
    }
}

/// What a cause means and what to do about it.
fn hint(cause: &str) -> &'static str {
    match cause {
        "timeout" => {
            "no final response in time: the server lost it or is too slow; a lower --rate, or see what it logs"
        }
        "refused" => "503: the server says that it is overloaded; a lower --rate",
        "unreachable" => {
            "no connection: is the server there, is its backlog large enough, are there ports (--source)?"
        }
        "connection_lost" => {
            "the server closed it: its limits on connections, and what it logs, say why"
        }
        "credentials" => {
            "not taken: --password, --domain and --users-file have to be those of the server"
        }
        "response" => "a final response that it is not about; the responses above say which",
        "rubbish" => "bytes that are no SIP message came back: is this a SIP server?",
        "local" => {
            "this machine gave out of descriptors, ports or processes: --source, --processes, `ulimit -n`"
        }
        "not_begun" => {
            "as many as --outstanding-max were under way when they were due; the server does not keep up"
        }
        "gave_up" => {
            "ended before they were answered: the server fell silent, or the run was ended"
        }
        _ => "",
    }
}

impl Summary {
    /// The figures in lines.
    pub(crate) fn written(&self, paint: Paint) -> String {
        let mut out = String::new();
        let done = self.write(&mut out, paint);
        done.expect("text can be written into memory");
        out
    }

    fn write(&self, out: &mut String, paint: Paint) -> fmt::Result {
        self.write_head(out, paint)?;
        self.write_times(out, paint)?;
        self.write_counts(out, paint)?;
        self.write_failures(out, paint)?;
        if self.parts.len() > 1 {
            write_parts(out, &self.parts, paint)?;
        }
        if !self.steps.is_empty() {
            write_steps(out, &self.steps, paint)?;
        }
        self.write_tool(out, paint)?;
        self.write_bounds(out, paint)
    }

    fn write_head(&self, out: &mut String, paint: Paint) -> fmt::Result {
        if !self.scenario.is_empty() {
            let how = match (self.transport, self.lifetime.as_str()) {
                ("udp", _) | (_, "") => String::new(),
                (_, lifetime) => format!(", connections {lifetime}"),
            };
            writeln!(
                out,
                "{} to {}{how}",
                paint.bold(&self.scenario),
                self.target
            )?;
        }
        if !self.comment.is_empty() {
            writeln!(out, "{}", paint.dim(&self.comment))?;
        }
        if self.max_rate.is_some() || !self.trials_sustained() {
            let found = match self.max_rate {
                Some(max) => paint.bold(paint.good(format!("{} is sustained", rate(max)))),
                None => paint.bad("no rate was sustained"),
            };
            writeln!(out, "{found}")?;
            writeln!(out, "\nThe last trial:")?;
        }
        let offered = self.offered_per_second.filter(|_| self.steps.is_empty());
        let offered = offered.map_or(String::new(), |r| format!("{} offered, ", rate(r)));
        writeln!(
            out,
            "{} in {:.2} s: {offered}{} succeeded",
            counted(self.operations, "operation", "operations"),
            self.seconds,
            paint.bold(rate(self.succeeded_per_second))
        )?;
        let success = share(self.succeeded, self.operations);
        let success = match (self.operations, self.succeeded == self.operations) {
            (0, _) => paint.dim("nothing was done"),
            (_, true) => paint.good(format!("{success} succeeded")),
            (_, false) => paint.bad(format!("{success} succeeded")),
        };
        writeln!(out, "{success}")?;
        if self.stopped {
            writeln!(out, "{}", paint.warn("It was ended early."))?;
        }
        if self.gave_up {
            let text = "The server fell silent, and the rest was not begun.";
            writeln!(out, "{}", paint.bad(text))?;
        }
        if self.processes_lost > 0 {
            let text = format!(
                "{} of {} processes died.",
                self.processes_lost, self.processes
            );
            writeln!(out, "{}", paint.bad(text))?;
        }
        writeln!(out)
    }

    /// Whether this is no search, or one that found something.
    fn trials_sustained(&self) -> bool {
        !self.searched || self.max_rate.is_some()
    }

    fn write_times(&self, out: &mut String, paint: Paint) -> fmt::Result {
        // What never succeeded took no time.
        let latency = Some(&self.latency_us).filter(|times| times.max > 0);
        let rows = [
            ("latency", latency, "from when it was due"),
            (
                "transaction",
                self.transaction_us.as_ref(),
                "from request to final response",
            ),
            (
                "connecting",
                self.setup_us.as_ref(),
                "until a connection is open",
            ),
        ];
        let heads = ["p50", "p90", "p99", "p99.9", "max"];
        let head: String = heads.iter().map(|h| format!("{h:>10}")).collect();
        writeln!(out, "  {}", paint.dim(format!("{:<12}{head}", "")))?;
        for (name, times, meaning) in rows {
            let Some(times) = times else {
                continue;
            };
            let Latency {
                p50,
                p90,
                p99,
                p999,
                max,
                ..
            } = times;
            let cells = [p50, p90, p99, p999, max].map(|us| format!("{:>10}", time(*us)));
            let meaning = paint.dim(meaning);
            writeln!(out, "  {}{}   {meaning}", label(name), cells.concat())?;
        }
        writeln!(out)
    }

    fn write_counts(&self, out: &mut String, paint: Paint) -> fmt::Result {
        if !self.responses.is_empty() {
            let response = |r: &Responses| format!("{} x {}", r.code, grouped(r.count));
            let responses: Vec<String> = self.responses.iter().map(response).collect();
            writeln!(out, "  {}{}", label("responses"), responses.join("   "))?;
        }
        let mut odd = Vec::new();
        if self.stray_responses > 0 {
            odd.push(counted(
                self.stray_responses,
                "stray response",
                "stray responses",
            ));
        }
        if self.rubbish_messages > 0 {
            odd.push(counted(
                self.rubbish_messages,
                "message not understood",
                "messages not understood",
            ));
        }
        if self.retransmissions > 0 || self.transport == "udp" {
            let again = counted(self.retransmissions, "message", "messages");
            writeln!(out, "  {}{again}", label("sent again"))?;
        }
        if !odd.is_empty() {
            writeln!(out, "  {}{}", label("odd"), paint.warn(odd.join(", ")))?;
        }
        if self.connections_opened > 0 {
            writeln!(
                out,
                "  {}{} opened, {} open at the end",
                label("connections"),
                grouped(self.connections_opened),
                grouped(self.connections_open)
            )?;
        }
        Ok(())
    }

    fn write_failures(&self, out: &mut String, paint: Paint) -> fmt::Result {
        if self.failures.total() == 0 {
            return Ok(());
        }
        let failed = format!(
            "{} of {}",
            grouped(self.failures.total()),
            grouped(self.operations)
        );
        writeln!(out, "  {}{}", label("failures"), paint.bad(failed))?;
        for (cause, count) in self.failures.named() {
            if count > 0 {
                let hint = paint.dim(hint(cause));
                writeln!(out, "    {cause:<16}{:>10}   {hint}", grouped(count))?;
            }
        }
        Ok(())
    }

    fn write_tool(&self, out: &mut String, paint: Paint) -> fmt::Result {
        if self.operations > 0 {
            writeln!(
                out,
                "  {}{:.2} us of processor time an operation, {:.2} of it in user space; {:.0} % busy",
                label("this tool"),
                self.driver_us_per_operation,
                self.driver_user_us_per_operation,
                self.driver_busy_percent
            )?;
        }
        match &self.bottleneck {
            Some(text) => writeln!(out, "  {}{}", label("limited by"), paint.warn(text)),
            None => Ok(()),
        }
    }

    fn write_bounds(&self, out: &mut String, paint: Paint) -> fmt::Result {
        for bound in &self.expectations {
            let mark = match bound.held {
                true => paint.good("held  "),
                false => paint.bad("missed"),
            };
            writeln!(
                out,
                "  {}{mark}  {}, found {}",
                label("bound"),
                bound.text,
                bound.written
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.written(Paint(false)).trim_end())
    }
}

fn write_parts(out: &mut String, parts: &[Part], paint: Paint) -> fmt::Result {
    let head = format!(
        "{:<18}{:>11}{:>11}{:>10}{:>10}{:>10}{:>10}",
        "part", "offered", "operations", "success", "p50", "p99", "max"
    );
    writeln!(out, "\n  {}", paint.dim(head))?;
    for part in parts {
        let times = &part.latency_us;
        let success = format!("{:>10}", share(part.succeeded, part.operations));
        writeln!(
            out,
            "  {:<18}{:>11}{:>11}{}{:>10}{:>10}{:>10}",
            part.name,
            part.offered_per_second.map_or(String::new(), rate),
            grouped(part.operations),
            match part.succeeded == part.operations {
                true => success,
                false => paint.bad(success),
            },
            time(times.p50),
            time(times.p99),
            time(times.max),
        )?;
    }
    writeln!(out)
}

fn write_steps(out: &mut String, steps: &[Step], paint: Paint) -> fmt::Result {
    let head = format!(
        "{:>11}{:>8}{:>11}{:>10}{:>10}{:>10}{:>12}",
        "rate", "length", "achieved", "success", "p50", "p99", "sent again"
    );
    writeln!(out, "\n  {}", paint.dim(head))?;
    for step in steps {
        let length = format!("{:.1} s", step.seconds);
        let sustained = match (step.sustained, &step.bottleneck) {
            (true, _) => paint.good("sustained"),
            (false, None) => paint.bad("not sustained"),
            (false, Some(_)) => paint.warn("not sustained, by this tool"),
        };
        writeln!(
            out,
            "  {:>11}{length:>8}{:>11}{:>10}{:>10}{:>10}{:>12}   {sustained}",
            rate(step.rate),
            rate(step.achieved_per_second),
            share(step.succeeded, step.operations),
            time(step.p50_us),
            time(step.p99_us),
            grouped(step.retransmissions),
        )?;
    }
    writeln!(out)
}

fn label(text: &str) -> String {
    format!("{text:<12}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Statistics;

    #[test]
    fn each_cause_of_failure_has_a_hint() {
        for (cause, _) in Failures::default().named() {
            assert!(!hint(cause).is_empty(), "{cause}");
        }
    }

    #[test]
    fn failures_are_told_by_cause_and_steps_and_parts_in_tables() {
        let mut statistics = Statistics::new(["calls", "refreshes"].map(String::from).into_iter());
        statistics.parts[0].begun = 3;
        statistics.parts[0].failures.timeout = 3;
        statistics.parts[1].begun = 2;
        statistics.parts[1].succeeded = 2;
        let mut summary = statistics.summary();
        summary.steps.push(Step::of_trial(
            400.0,
            std::time::Duration::from_secs(3),
            &summary,
        ));
        let text = summary.to_string();
        for part in [
            "failures    3 of 5",
            "timeout",
            "a lower --rate",
            "40.00 % succeeded",
            "refreshes",
            "400/s",
            "not sustained",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!text.contains('\x1b'));
    }
}
