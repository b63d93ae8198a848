//! What the help says is what the program does.

use super::*;
use crate::plan::{AskedRate, Plan};

#[test]
fn the_command_line_is_consistent() {
    command().debug_assert();
    let cli = Cli::try_parse_from(["tsb", "run", "--store", "memory:", "--rate", "54k"]);
    let Ok(Cli {
        command: Some(Command::Run(run)),
        ..
    }) = cli
    else {
        panic!("{cli:?}")
    };
    assert_eq!(run.run.options.store, ["memory:"]);
}

/// The whole text that `--help` has of an argument.
fn help_of(argument: &clap::Arg) -> String {
    let text = argument.get_long_help().or_else(|| argument.get_help());
    text.map(ToString::to_string).unwrap_or_default()
}

/// A word as JSON has it: `aligned` and not `Aligned`.
fn word(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

fn switch(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

#[test]
fn defaults_in_the_help_of_a_run_are_those_of_the_plan() {
    let plan = Plan::default().complete().unwrap();
    let (workload, wire) = (&plan.workload, &plan.wire);
    let disorder = &workload.disorder;
    assert_eq!(plan.rate, AskedRate::Natural);
    let expected = [
        ("store", plan.stores[0].to_string()),
        ("transport", plan.transport.name().to_owned()),
        ("protocol", plan.protocol.to_string()),
        ("workload", word(&workload.fleet)),
        ("series", workload.series.unwrap().to_string()),
        ("rate", "the fleet's own".to_owned()),
        ("duration", format!("{}s", plan.duration_ns.unwrap() / 1_000_000_000)),
        ("mixed_intervals", (!workload.intervals.is_empty()).to_string()),
        ("seed", workload.seed.to_string()),
        ("phase", word(workload.phase)),
        ("batch", word(workload.batch)),
        ("churn", "none".to_owned()),
        ("jitter", format!("{}s", workload.jitter.max_ns)),
        ("late", disorder.late.to_string()),
        ("missing", disorder.missing.to_string()),
        ("duplicate", disorder.duplicate.to_string()),
        ("out_of_order", disorder.out_of_order.to_string()),
        ("workers", plan.workers.to_string()),
        ("in_flight", plan.writes_in_flight().to_string()),
        ("connections", tsb_run::plan::IN_FLIGHT.to_string()),
        ("sockets", wire.sockets.to_string()),
        ("datagram", wire.datagram_bytes.to_string()),
        ("gso", switch(wire.gso)),
        ("gro", switch(wire.gro)),
        ("max_series", format!("{}M", plan.max_series / 1_000_000)),
        ("no_verify", (!plan.verify).to_string()),
        ("append", plan.append.to_string()),
        ("no_calibrate", (!plan.calibrate).to_string()),
        (
            "report_interval",
            format!("{}s", plan.report_interval_ns / 1_000_000_000),
        ),
    ];
    let command = command();
    let run = command.find_subcommand("run").unwrap();
    for (name, default) in expected {
        let argument = run.get_arguments().find(|argument| argument.get_id() == name).unwrap();
        let text = help_of(argument);
        assert!(
            text.contains(&format!("[default: {default}]")),
            "--{name} is {default}: {text}"
        );
    }
}

/// Every value that may be left out: its help says what happens then.
#[test]
fn every_optional_value_has_its_default_in_the_help() {
    for command in command().get_subcommands() {
        let optional = command.get_arguments().filter(|argument| {
            let takes_value = argument.get_action().takes_values();
            takes_value
                && !argument.is_positional()
                && !argument.is_required_set()
                && argument.get_default_values().is_empty()
        });
        for argument in optional {
            let text = help_of(argument);
            let is_said = ["[default: ", "ithout it", "may be given more than once", "instead"];
            assert!(
                is_said.iter().any(|words| text.contains(words)) || command.get_name() == "completions",
                "tsb {} {}: {text}",
                command.get_name(),
                argument.get_id()
            );
        }
    }
}
