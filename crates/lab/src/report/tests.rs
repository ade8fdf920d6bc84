//! Whole reports from records of all kinds.

use std::collections::BTreeMap;

use super::*;
use crate::{
    experiment::Experiment,
    record::{
        Agreement, Axis, Bar, BarPart, Chart, Curve, Data, Finding, Group, Machine, Measured,
        Outcome, Point, Ratio, Table, Who,
    },
};

const EVERYONE: [Who; 4] = [Who::Echo, Who::Kamailio, Who::Sipolis, Who::Paper];
const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        name: "second-by-name",
        title: "First in the report",
        paper: "The paper found `this`.",
        how: "Repeated so.",
        run: |_| Ok(Measured::default()),
    },
    Experiment {
        name: "never-run",
        title: "Never run",
        paper: "",
        how: "",
        run: |_| Ok(Measured::default()),
    },
];

fn axis(label: &str, log: bool) -> Axis {
    Axis {
        label: label.to_owned(),
        log,
    }
}

fn lines(id: &str, log: bool, points: &[(f64, f64)]) -> Chart {
    let points: Vec<Point> = points
        .iter()
        .map(|(x, y)| Point {
            x: *x,
            y: *y,
            low: y * 0.9,
            high: y * 1.2,
        })
        .collect();
    let curve = |who| Curve {
        who,
        label: "UDP".to_owned(),
        points: points.clone(),
    };
    Chart {
        id: id.to_owned(),
        title: format!("Lines of {id}"),
        x: axis("requests per second", log),
        y: axis("response time, ms", log),
        data: Data::Lines(EVERYONE.map(curve).to_vec()),
    }
}

fn bars(id: &str, log: bool, values: &[f64]) -> Chart {
    let part = |(index, value): (usize, &f64)| BarPart {
        label: format!("part {index}"),
        value: *value,
    };
    let whole: f64 = values.iter().sum();
    let bar = |who| Bar {
        who,
        label: "UDP".to_owned(),
        parts: values.iter().enumerate().map(part).collect(),
        low: whole * 0.9,
        high: whole * 1.1,
    };
    Chart {
        id: id.to_owned(),
        title: format!("Bars of {id}"),
        x: axis("transport", false),
        y: axis("time, µs", log),
        data: Data::Bars(vec![Group {
            label: "low rate".to_owned(),
            bars: EVERYONE.map(bar).to_vec(),
        }]),
    }
}

fn record(name: &str, outcome: Outcome) -> Record {
    Record {
        name: name.to_owned(),
        machine: Machine {
            processor: "A processor".to_owned(),
            commit: "abc".to_owned(),
            ..Machine::default()
        },
        quick: false,
        repeats: 3,
        at: 1_795_305_894,
        seconds: 61.5,
        warnings: vec!["only two cores".to_owned()],
        commands: vec!["sipolis load register".to_owned()],
        outcome,
    }
}

fn measured(charts: Vec<Chart>) -> Measured {
    Measured {
        charts,
        tables: vec![Table {
            title: "A table".to_owned(),
            columns: vec!["cache".to_owned(), "bytes".to_owned()],
            rows: vec![vec!["TCP".to_owned(), "2,304".to_owned()]],
        }],
        findings: vec![Finding {
            paper: "77 % of UDP".to_owned(),
            here: "71 % of UDP".to_owned(),
            agrees: Agreement::Yes,
        }],
        ratios: vec![Ratio {
            label: "TCP / UDP".to_owned(),
            of: BTreeMap::from([(Who::Paper, 0.77), (Who::Sipolis, 0.71)]),
        }],
        samples: Vec::new(),
    }
}

fn both(records: &[Record]) -> (String, String, Vec<String>) {
    let story = Story::new(records, EXPERIMENTS, "data");
    let pictures = story.pictures().map(|(_, svg)| svg.to_owned()).collect();
    (markdown::page(&story), html::page(&story), pictures)
}

fn of_everything() -> Record {
    let odd = f64::NAN;
    let charts = vec![
        lines("plain", false, &[(1.0, 2.0), (2.0, 4.0)]),
        lines("log", true, &[(100.0, 0.2), (10_000.0, 30.0)]),
        lines("empty", false, &[]),
        lines("empty-log", true, &[]),
        lines("single", false, &[(5.0, 5.0)]),
        lines("zero", true, &[(0.0, 0.0), (10.0, 0.0), (20.0, 3.0)]),
        lines(
            "odd",
            false,
            &[
                (odd, 1.0),
                (1.0, odd),
                (f64::INFINITY, 1.0),
                (1.0, f64::MAX),
            ],
        ),
        bars("stacked", false, &[3.0, 9.5, 1.0]),
        bars("one", false, &[0.0]),
        bars("logarithms", true, &[0.0, 500.0]),
        bars("nothing", false, &[]),
        bars("odder", true, &[odd, f64::INFINITY, -4.0]),
    ];
    record("second-by-name", Outcome::Measured(measured(charts)))
}

#[test]
fn every_kind_of_chart_is_drawn_with_its_words_as_text() {
    let (_, page, pictures) = both(&[of_everything()]);
    assert_eq!(pictures.len(), 12);
    for svg in &pictures {
        assert!(svg.starts_with("<svg role=\"img\" aria-label=\""), "{svg}");
        assert!(svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("font-family=\"sans-serif\""));
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
        assert!(page.contains(svg.as_str()), "each picture is in the page");
    }
    for words in [
        "Lines of log",
        "requests per second",
        "response time, ms",
        "Kamailio",
        "10,000",
    ] {
        assert!(pictures[1].contains(words), "{words}");
    }
    assert!(pictures[2].contains("no point could be drawn"));
}

#[test]
fn the_same_records_give_the_same_bytes() {
    let records = [
        of_everything(),
        record("other", Outcome::Skipped("no SCTP".to_owned())),
    ];
    assert_eq!(both(&records), both(&records));
    let [first, second] = records;
    assert_eq!(
        both(&[first.clone(), second.clone()]),
        both(&[second, first])
    );
}

#[test]
fn hostile_text_stays_text() {
    const HOSTILE: &str = "</svg><script>alert('1')</script>\" onload=\"x | ![y](z)";
    let mut evil = record("../../<script>", Outcome::Failed(HOSTILE.to_owned()));
    evil.machine.processor = HOSTILE.to_owned();
    evil.warnings = vec![HOSTILE.to_owned()];
    evil.commands = vec![format!("{HOSTILE}\n```\n<script>")];
    let mut charts = vec![lines("a", false, &[(1.0, 1.0)]), bars("b", false, &[1.0])];
    for chart in &mut charts {
        chart.id = format!("../{HOSTILE}");
        chart.title = HOSTILE.to_owned();
        chart.x.label = HOSTILE.to_owned();
        chart.y.label = HOSTILE.to_owned();
    }
    let mut inside = measured(charts);
    inside.tables[0].rows[0][0] = HOSTILE.to_owned();
    inside.findings[0].here = HOSTILE.to_owned();
    inside.ratios[0].label = HOSTILE.to_owned();
    let records = [evil, record("<b>", Outcome::Measured(inside))];
    let story = Story::new(&records, EXPERIMENTS, "data");
    for (file, svg) in story.pictures() {
        assert!(
            file.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-.".contains(c)),
            "{file}"
        );
        assert!(!file.contains(".."), "{file}");
        assert!(
            !svg.contains("<script") && !svg.contains("\" onload=\""),
            "{svg}"
        );
    }
    let page = html::page(&story);
    assert!(!page.contains("<script") && !page.contains("\" onload=\""));
    let page = markdown::page(&story);
    let outside_of_code: String = page.split("````").step_by(2).collect();
    assert!(
        !outside_of_code.contains("<script") && !outside_of_code.contains("![y]"),
        "{page}"
    );
}

#[test]
fn skipped_failed_and_never_run_are_counted_with_their_reasons() {
    let records = [
        of_everything(),
        record(
            "a-skipped",
            Outcome::Skipped("the kernel has no SCTP".to_owned()),
        ),
        record(
            "b-failed",
            Outcome::Failed("it did not start\nand said <more>".to_owned()),
        ),
    ];
    let (markdown, page, _) = both(&records);
    for text in [&markdown, &page] {
        assert!(text.contains("1 measured, 1 skipped, 1 failed, 1 not run"));
        for words in [
            "the kernel has no SCTP",
            "it did not start",
            "never-run",
            "only two cores",
            "0.77",
        ] {
            assert!(text.contains(words), "{words}");
        }
        assert_eq!(
            text.matches("it did not start").count(),
            3,
            "in short, in short and whole"
        );
        assert!(text.find("First in the report") < text.find("a-skipped"));
    }
}

#[test]
fn a_quick_record_says_so_above_all_with_itself_and_in_its_pictures() {
    let full = both(&[of_everything()]);
    assert!(!full.0.contains("CAUTION") && !full.1.contains("class=\"alarm\""));
    let mut quick = of_everything();
    quick.quick = true;
    let (markdown, page, pictures) = both(&[quick]);
    assert_eq!(markdown.matches("[!CAUTION]").count(), 2);
    assert_eq!(page.matches("class=\"alarm\"").count(), 2);
    assert!(
        pictures
            .iter()
            .all(|svg| svg.contains("no figure of it counts"))
    );
}

#[test]
fn a_warning_that_all_records_have_is_said_once() {
    let mut other = record("other", Outcome::Skipped("why".to_owned()));
    other.warnings.push("its own".to_owned());
    let (markdown, page, _) = both(&[of_everything(), other]);
    for text in [markdown, page] {
        assert_eq!(text.matches("only two cores").count(), 1);
        assert_eq!(text.matches("its own").count(), 1);
    }
}

#[test]
fn records_of_different_commits_are_told_apart() {
    let mut other = record("other", Outcome::Skipped("why".to_owned()));
    other.machine.commit = "def".to_owned();
    let (markdown, page, _) = both(&[of_everything(), other]);
    for text in [markdown, page] {
        assert!(text.contains("2 different machines"));
        assert!(text.contains("Measured on 2: A processor"));
    }
}

#[test]
fn a_report_is_written_from_a_directory_and_a_broken_record_is_named() {
    let directory = std::env::temp_dir().join(format!("sipolis-report-{}", std::process::id()));
    let data = directory.join("data");
    fs::create_dir_all(&data).unwrap();
    assert!(write(&data, &directory).unwrap_err().contains("no records"));
    let text = serde_json::to_vec(&of_everything()).unwrap();
    fs::write(data.join("second-by-name.json"), text).unwrap();
    write(&data, &directory).unwrap();
    let page = fs::read_to_string(directory.join("README.md")).unwrap();
    assert!(
        page.contains("(second-by-name-log.svg)") && page.contains("(data/second-by-name.json)")
    );
    assert!(directory.join("second-by-name-log.svg").is_file());
    assert!(directory.join("index.html").is_file());
    fs::write(data.join("broken.json"), "{").unwrap();
    assert!(
        write(&data, &directory)
            .unwrap_err()
            .contains("broken.json")
    );
    fs::remove_dir_all(&directory).unwrap();
}
