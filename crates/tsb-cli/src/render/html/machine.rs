//! The plan section, for repeating a run, and the machine section.

use super::PageRun;
use super::markup::Markup;
use crate::render::figures::{Figure, NOISE, Unit, figure};

pub(super) fn plan(shown: &[PageRun<'_>], page: &mut Markup) {
    page.section(
        "plan",
        "Plan",
        "Everything that was asked. Save it as plan.json and run it again with: tsb run --plan plan.json",
    );
    for run in shown {
        page.run_heading(run);
        if run.run.is_of_strangers() {
            page.element(
                "<p>",
                "Other programs sent the samples: it cannot be run again.",
                "</p>\n",
            );
        } else {
            page.element("<p>", &format!("Seed {}, fingerprint ", run.run.seed), "");
            page.element("<code>", &run.run.fingerprint, "</code>. ");
            page.text("The same fingerprint means the same samples.");
            page.raw("</p>\n");
        }
        page.raw("<details class=\"plan\"><summary>The plan as JSON</summary>\n<p><button type=\"button\" data-save=\"plan\">Save as plan.json</button></p>\n<pre tabindex=\"0\">");
        page.text(&serde_json::to_string_pretty(&run.run.plan).unwrap_or_default());
        page.raw("</pre>\n</details>\n");
    }
    page.end_section();
}

const FACTS: &[Figure] = &[
    figure(
        "cores",
        "/machine/cores",
        Unit::Count,
        "CPUs that this process may run on. Emitter, listener and store each want one.",
    ),
    figure(
        "cores of the control group",
        "/machine/cgroup_cores",
        Unit::Times,
        "A quota stops threads until the next period, which looks like a stall of the store.",
    ),
    figure(
        "memory",
        "/machine/memory_bytes",
        Unit::Bytes,
        "What the machine has; a store that is swapped out measures the disk.",
    ),
    figure(
        "memory of the control group",
        "/machine/cgroup_memory_bytes",
        Unit::Bytes,
        "Beyond it the process is killed.",
    ),
];

pub(super) fn machine(shown: &[PageRun<'_>], page: &mut Markup) {
    page.section(
        "machine",
        "Machine",
        "Figures in time are about this machine as it was then; ratios of interleaved runs carry further.",
    );
    for run in shown {
        page.run_heading(run);
        words(run, page);
        page.figures(run, FACTS);
        if run.run.noise.is_some() {
            page.figures(run, NOISE);
        }
    }
    page.end_section();
}

fn words(shown: &PageRun<'_>, page: &mut Markup) {
    let machine = &shown.run.machine;
    let facts = [
        ("processor", machine.cpu.as_deref(), "The processor's own name."),
        (
            "kernel",
            machine.kernel.as_deref(),
            "Its version decides how sockets and files behave.",
        ),
        (
            "governor",
            machine.governor.as_deref(),
            "Anything but performance changes the clock frequency while a run measures.",
        ),
        (
            "clock source",
            machine.clock_source.as_deref(),
            "Where the kernel takes its time from; tsc and kvm-clock are quick to read.",
        ),
        (
            "build",
            Some(if machine.debug_build { "debug" } else { "release" }),
            "No figure of a debug build means anything.",
        ),
    ];
    page.raw("<dl class=\"figures\">\n");
    for (name, value, meaning) in facts {
        let Some(value) = value else { continue };
        page.element("<div><dt>", name, "</dt><dd class=\"number is-word\">");
        page.element("", value, "</dd>");
        page.element("<dd class=\"meaning\">", meaning, "</dd></div>\n");
    }
    page.raw("</dl>\n");
}
