//! From the command line to a plan.

use std::{path::Path, time::Duration};

use net::source_address;

use crate::{
    args::{LoadArgs, Scenario},
    distribution::Distribution,
    driver::Work,
    expect::Expectation,
    io::Transport,
    mix::Mix,
    pace::{self, Pace, Rate},
    plan::{CallPlan, Connections, Kind, Lifetime, PartPlan, Plan},
    sources::Sources,
    stop::Stop,
    users::Users,
};

/// Without a count and a duration.
const DURATION: Duration = Duration::from_secs(10);
/// Users by rule, unless said otherwise.
const USERS: usize = 10_000;
/// Operations under way in a closed loop, unless said otherwise.
const OUTSTANDING: usize = 64;
/// Where a search begins.
pub(crate) const LOWEST_RATE: f64 = 100.0;
/// Descriptors that are no connections.
const DESCRIPTORS_OTHER: u64 = 64;

/// Who of several processes this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    number: usize,
    of: usize,
}

impl Place {
    /// This one's part of a whole: the parts of all processes are the whole.
    fn share(self, whole: usize) -> usize {
        pace::share(whole, self.number, self.of)
    }
}

/// What is done, and by whom.
struct What {
    name: String,
    comment: String,
    users: Users,
    parts: Vec<PartPlan>,
}

impl LoadArgs {
    /// How much to do, of all processes together.
    pub(crate) fn work(&self) -> Work {
        let spread = matches!(self.pace.rate, Some(Rate::Ramp(..) | Rate::Steps(_)));
        let default = (self.pace.count.is_none() || spread).then_some(DURATION);
        Work {
            operations: self.pace.count,
            duration: self.pace.duration.or(default),
        }
    }

    /// The bounds that are stated, or that everything succeeds.
    pub(crate) fn expectations(&self) -> Vec<Expectation> {
        let mut stated = self.output.expect.clone();
        stated.extend(self.output.expect_success.map(Expectation::success));
        // A run that only holds connections has nothing to succeed with.
        if stated.is_empty() && self.pace.count != Some(0) {
            stated.push(Expectation::success(100.0));
        }
        stated
    }

    /// The whole load, or this process' share of it.
    ///
    /// # Errors
    /// A file can't be read, or the words contradict each other or the machine; the text says what
    /// to do.
    pub(crate) fn plan(&self) -> Result<Plan, String> {
        let (number, of) = self.connections.child.unwrap_or((0, 1));
        let place = Place { number, of };
        let What {
            name,
            comment,
            users,
            parts,
        } = self.what(place)?;
        if users.len() < 2 * self.connections.threads {
            let text = "at least two users are needed for each thread of each process";
            return Err(String::from(text));
        }
        self.check_ringing(&parts)?;
        let connections = self.connections(place, &users, &parts)?;
        let work = self.work();
        Ok(Plan {
            name,
            comment,
            target: self.target.clone(),
            users,
            parts,
            connections,
            count: work.operations.map(|n| place.share(n as usize) as u64),
            duration: work.duration,
            timeout: self.pace.timeout,
            outstanding_max: place.share(self.pace.outstanding_max).max(1),
            threads: self.connections.threads,
            warm_up: place.share(self.pace.warm_up as usize) as u64,
            stop: Stop::default(),
        })
    }

    fn what(&self, place: Place) -> Result<What, String> {
        let Scenario::Mix(name) = &self.scenario else {
            if self.pace.scale.is_some() {
                return Err(String::from(
                    "--scale is for mixes; --rate and --users say how much",
                ));
            }
            let count = self.users.count.unwrap_or(USERS);
            let users = self.users(place, count, None)?;
            let name = self.scenario.name().to_owned();
            let part = PartPlan {
                name: name.clone(),
                users: 0..users.len(),
                kind: self.kind()?,
                pace: self.pace(place),
            };
            return Ok(What {
                name,
                comment: String::new(),
                users,
                parts: vec![part],
            });
        };
        if self.pace.outstanding.is_some() || self.pace.rate.is_some() {
            return Err(String::from(
                "a mix has rates of its own; --scale changes them",
            ));
        }
        let mix = match Mix::built_in(name) {
            Some(mix) => mix,
            None => Mix::read(Path::new(name))?,
        };
        let mix = mix.scaled(self.pace.scale.unwrap_or(1.0));
        let domain = mix.domain.clone();
        let all = self.users.count.unwrap_or(mix.users);
        let users = self.users(place, all, domain.as_deref())?;
        let mut mix = mix.scaled(1.0 / place.of as f64);
        for part in &mut mix.parts {
            part.users.end = part.users.end.min(users.len());
        }
        Ok(What {
            name: mix.name,
            comment: mix.comment,
            users,
            parts: mix.parts,
        })
    }

    /// A process' users: pairs stay together, and no user is another's too.
    fn users(&self, place: Place, count: usize, domain: Option<&str>) -> Result<Users, String> {
        let own = self.users.domain.as_deref();
        let domain = own.or(domain).unwrap_or(&self.target.host);
        let before = |number: usize, count: usize| match number == place.of {
            true => count,
            false => 2 * (count / 2 * number / place.of),
        };
        let Some(file) = &self.users.file else {
            let first = before(place.number, count);
            let count = before(place.number + 1, count) - first;
            return Ok(Users::numbered(first, count, domain, &self.users.password));
        };
        let users = Users::from_csv(file, domain).map_err(|e| e.to_string())?;
        let first = before(place.number, users.len());
        Ok(users.share(first..before(place.number + 1, users.len())))
    }

    fn pace(&self, place: Place) -> Pace {
        let poisson = self.pace.poisson;
        let pace = match (&self.pace.rate, self.pace.find_max) {
            (Some(rate), _) => Pace::Open {
                rate: rate.clone(),
                poisson,
            },
            (None, Some(range)) => {
                let rate = Rate::Constant(range.map_or(LOWEST_RATE, |(low, _)| low));
                Pace::Open { rate, poisson }
            }
            (None, None) => Pace::Outstanding(self.pace.outstanding.unwrap_or(OUTSTANDING).max(1)),
        };
        pace.share(place.number, place.of)
    }

    fn kind(&self) -> Result<Kind, String> {
        let digest = self.users.digest;
        let body = self.calls.body;
        Ok(match &self.scenario {
            Scenario::Register => Kind::Register {
                digest,
                expires_s: self.users.expires,
                first: self.users.first,
            },
            Scenario::Options => Kind::Options { body },
            Scenario::Echo => Kind::Echo { body },
            Scenario::Notify => Kind::Notify { digest },
            Scenario::Message => Kind::Message { digest, body },
            Scenario::Call | Scenario::Mix(_) => Kind::Call(self.call()?),
        })
    }

    fn call(&self) -> Result<CallPlan, String> {
        let calls = &self.calls;
        if calls.cancel + calls.busy > 100.0 {
            return Err(String::from(
                "--cancel and --busy are more than all calls together",
            ));
        }
        Ok(CallPlan {
            digest: self.users.digest,
            ring: calls.ring,
            talk: calls.hold.map_or(calls.talk, |ms| {
                Distribution::Constant(ms.saturating_mul(1000))
            }),
            prack: calls.prack,
            update: calls.update,
            reinvite: calls.reinvite,
            cancel: calls.cancel,
            busy: calls.busy,
        })
    }

    fn connections(
        &self,
        place: Place,
        users: &Users,
        parts: &[PartPlan],
    ) -> Result<Connections, String> {
        let args = &self.connections;
        let transport = self.target.transport;
        let lifetime = match args.connection_each {
            true => Lifetime::Transaction,
            false => args.lifetime,
        };
        if transport == Transport::Udp && lifetime != Lifetime::Persistent {
            return Err(format!(
                "UDP has no connections, so --lifetime is without meaning; tcp://{} has",
                self.target.address
            ));
        }
        let while_it_runs = lifetime != Lifetime::Persistent;
        let all = match (args.count, transport, lifetime) {
            (Some(count), _, _) => count,
            (None, Transport::Udp, _) => 1,
            (None, _, Lifetime::PersistentOpen) => users.len() * place.of,
            (None, Transport::Tcp, _) => 100,
        };
        let count = place.share(all).max(1);
        let callees = parts.iter().any(|part| part.kind.callees().is_some());
        let callee_transport = args.callee_transport.map_or(transport, Transport::from);
        let of_callers = match lifetime {
            Lifetime::Dialog | Lifetime::Transaction => 0, // as many as are under way
            _ => count,
        };
        let held = of_callers + if callees { count } else { 0 };
        self.check_descriptors(held, place)?;
        let own = source_address(self.target.address)
            .map_err(|e| format!("no way to {}: {e}", self.target.address))?;
        let sources = match &args.source {
            Some(sources) => sources.clone(),
            None => Sources::suitable(own, self.target.address, all, while_it_runs),
        };
        if sources
            .0
            .iter()
            .any(|source| source.is_ipv4() != self.target.address.is_ipv4())
        {
            return Err(format!(
                "--source has addresses of another family than {}",
                self.target.address
            ));
        }
        Ok(Connections {
            transport,
            callee_transport,
            lifetime,
            count,
            sources: sources.share(place.number, place.of).0,
        })
    }

    /// Whether a search can find anything: a call's latency has its ringing in it.
    fn check_ringing(&self, parts: &[PartPlan]) -> Result<(), String> {
        let (Some(_), Some(limit_us)) = (self.pace.find_max, self.pace.within.time_us()) else {
            return Ok(());
        };
        let shortest_us = |ring| match ring {
            Distribution::Constant(us) | Distribution::Uniform(us, _) => us,
            Distribution::Exponential(_) => 0,
        };
        let rings = parts.iter().find_map(|part| match &part.kind {
            Kind::Call(call) if shortest_us(call.ring) >= limit_us => Some(call.ring),
            _ => None,
        });
        let Some(ring) = rings else {
            return Ok(());
        };
        Err(format!(
            "calls ring {ring}, which is part of their latency, so none holds {}: --within a longer time, such as 'p99<{}ms'",
            self.pace.within,
            (shortest_us(ring) + 50_000) / 1000
        ))
    }

    /// Whether one process may have so many connections.
    fn check_descriptors(&self, connections: usize, place: Place) -> Result<(), String> {
        let Ok(limit) = net::limits::raise_descriptors() else {
            return Ok(()); // it shows when they run out
        };
        let possible = limit.saturating_sub(DESCRIPTORS_OTHER).max(1);
        let split = self.connections.processes.max(place.of);
        let all = connections as u64 * place.of as u64;
        if all.div_ceil(split as u64) <= possible {
            return Ok(());
        }
        Err(format!(
            "{all} connections need as many descriptors, and a process may have {limit}: add --processes {}, or raise the limit (`ulimit -Hn`)",
            all.div_ceil(possible)
        ))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn plan(line: &str) -> Result<Plan, String> {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            load: LoadArgs,
        }
        let words = ["load"].into_iter().chain(line.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|e| e.to_string())?;
        line.load.plan()
    }

    #[test]
    fn processes_share_a_load_without_a_rest_and_no_user_is_in_two() {
        let children: Vec<Plan> = (0..3)
            .map(|n| {
                let line = "register tcp://127.0.0.1 --users 100 --connections 10 --count 50 --rate 90 --source 127.0.1.1-127.0.1.3";
                plan(&format!("{line} --child {n}/3")).expect("is right")
            })
            .collect();
        let sum = |of: fn(&Plan) -> usize| children.iter().map(of).sum::<usize>();
        assert_eq!(sum(|p| p.users.len()), 100);
        assert_eq!(sum(|p| p.connections.count), 10);
        assert_eq!(sum(|p| p.count.unwrap_or(0) as usize), 50);
        let mut names: Vec<Vec<u8>> = children
            .iter()
            .flat_map(|p| (0..p.users.len()).map(|n| p.users.get(n).name.to_vec()))
            .collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 100);
        assert!(children.iter().all(|p| p.users.len().is_multiple_of(2)));
        let rates: Vec<_> = children.iter().map(|p| p.parts[0].pace.clone()).collect();
        let rate = Rate::Constant(30.0);
        let poisson = false;
        assert_eq!(rates[0], Pace::Open { rate, poisson });
        let sources: Vec<_> = children
            .iter()
            .map(|p| p.connections.sources[0].to_string())
            .collect();
        assert_eq!(sources, ["127.0.1.1", "127.0.1.2", "127.0.1.3"]);
    }

    #[test]
    fn processes_share_a_mix_with_its_rates_and_users() {
        let whole = plan("city tcp://127.0.0.1 --scale 0.01").expect("is right");
        assert_eq!(whole.users.len(), 3000);
        let half = plan("city tcp://127.0.0.1 --scale 0.01 --child 1/2").expect("is right");
        assert_eq!(half.users.len(), 1500);
        assert_eq!(&*half.users.get(0).name, b"user01500");
        let mean = |plan: &Plan| match &plan.parts[1].pace {
            Pace::Open { rate, .. } => rate.mean(),
            Pace::Outstanding(_) => 0.0,
        };
        assert!((mean(&half) * 2.0 - mean(&whole)).abs() < 1e-9);
        assert_eq!(half.parts[0].users, 0..1500);
    }

    #[test]
    fn each_user_has_a_connection_when_it_opens_it_itself() {
        let plan = plan("register tcp://127.0.0.1 --lifetime persistent-open --users 500")
            .expect("is right");
        assert_eq!(plan.connections.count, 500);
    }

    #[test]
    fn connections_that_one_process_may_not_have_are_told_with_how_many_it_takes() {
        let many = 10_000_000_000usize;
        let fault = plan(&format!("register tcp://127.0.0.1 --connections {many}")).err();
        assert!(fault.is_some_and(|e| e.contains("add --processes ")));
    }

    #[test]
    fn a_search_for_calls_that_ring_longer_than_the_bound_is_refused_with_a_longer_one() {
        let fault = plan("call 127.0.0.1 --ring 4s --find-max").err();
        assert!(fault.is_some_and(|e| e.contains("'p99<4050ms'")));
        assert!(plan("call 127.0.0.1 --ring 4s --find-max --within p99<4050ms").is_ok());
        assert!(plan("itsp 127.0.0.1 --find-max").is_err());
        assert!(plan("call 127.0.0.1 --ring 4s --rate 5").is_ok());
    }

    #[test]
    fn steps_have_a_length_even_where_a_count_ends_them() {
        let plan = plan("options 127.0.0.1 --rate 1,2 --count 9").expect("is right");
        assert_eq!((plan.count, plan.duration), (Some(9), Some(DURATION)));
    }
}
