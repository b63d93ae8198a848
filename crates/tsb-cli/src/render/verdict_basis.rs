//! The basis of a verdict as text: every figure that has a threshold, and the disturbances of
//! the machine.

use tsb_core::report::Run;
use tsb_core::resource::Noise;

use super::lines::Lines;
use tsb_run::units::scaled;

/// Every measured figure with its threshold, and the disturbance by kind.
pub(super) fn figures(run: &Run, lines: &mut Lines) {
    if run.verdict.measured.is_empty() {
        return;
    }
    lines.heading("What the verdict rests on; a share is between 0 and 1");
    for measured in &run.verdict.measured {
        let mark = if measured.is_crossed() { "  CROSSED" } else { "" };
        lines.sentence(format!("{:<52} {}{mark}", measured.what, measured.figure()));
    }
    if let Some(noise) = &run.noise {
        lines.sentence(disturbance(noise));
    }
}

fn disturbance(noise: &Noise) -> String {
    let known = [
        (noise.stolen_share, "stolen by the hypervisor"),
        (noise.foreign_share, "used by other processes while the run waited"),
        (
            noise.own_wait_share,
            "waited by our own threads for each other (no noise)",
        ),
    ];
    let shares = known
        .into_iter()
        .filter_map(|(share, what)| share.map(|share| format!("{share:.4} {what}")));
    format!(
        "of the CPU time: {}; the process stood still for {:.1} ms at most",
        shares.collect::<Vec<_>>().join(", "),
        noise.late_max_ms
    )
}

/// The generator's ceiling, and the share of it that a closed loop held.
pub(super) fn ceiling(run: &Run, lines: &mut Lines) {
    let rate = &run.rate;
    let Some(ceiling) = rate.ceiling_per_second else {
        if run.plan["calibrate"] == false {
            let why = if run.hosts.iter().any(|host| host.ceiling_per_second.is_some()) {
                "not known of all hosts together: some share a machine; each has one of its own"
            } else {
                "not measured: --no-calibrate was given"
            };
            lines.line("ceiling", why);
        }
        return;
    };
    let held = if rate.closed_loop {
        format!("; held is {:.4} of it", rate.held_per_second / ceiling)
    } else {
        String::new()
    };
    lines.line(
        "ceiling",
        format!(
            "{} (this generator, same path, into a store that forgets){held}",
            scaled(ceiling)
        ),
    );
}
