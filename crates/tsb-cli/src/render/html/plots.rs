//! The plots over time: rate and staleness, heat map, resources.

use super::PageRun;
use super::markup::Markup;
use crate::render::figures::{Figure, RATE, STALENESS, Unit, figure};

pub(super) fn rate_and_staleness(shown: &[PageRun<'_>], page: &mut Markup) {
    page.section(
        "rate",
        "Rate and staleness over time",
        "Each step is one reporting interval. Drag across a plot to zoom into a time; all plots over time follow, and a double click shows everything again.",
    );
    page.plot(
        "rate",
        None,
        "Samples per second",
        "What the schedule asked, what was sent, and what the store accepted of it. Where they part, samples wait for the store, on the way, or are refused.",
    );
    for run in shown {
        page.run_heading(run);
        page.figures(run, RATE);
    }
    if shown.iter().any(|run| run.run.staleness.is_some()) {
        page.plot(
            "staleness",
            None,
            "Staleness",
            "The age of the newest visible sample of the stalest series in each interval. It rises by one second per second while the store shows nothing new.",
        );
        for run in shown.iter().filter(|run| run.run.staleness.is_some()) {
            page.run_heading(run);
            page.figures(run, STALENESS);
        }
    }
    page.end_section();
}

pub(super) fn heat_map(shown: &[PageRun<'_>], page: &mut Markup) {
    page.section(
        "heat",
        "Response time over time",
        "Each column is a reporting interval, each row a narrow range of response times: the stronger the colour, the larger the share of the interval's operations. A quantile hides two humps; here they show.",
    );
    for run in shown {
        page.run_heading(run);
        if run.run.intervals.iter().any(|slice| slice.response_cells.is_some()) {
            page.plot(
                "heat",
                Some(run.index),
                "Heat map of response times",
                "Due until done, on a log axis. The lines are p50, p99 and the slowest operation of each interval; a quantile is drawn where enough operations stand behind it.",
            );
        } else {
            page.raw("<p class=\"absent\">This report holds no response times by interval.</p>\n");
        }
    }
    page.end_section();
}

pub(super) fn resources(shown: &[PageRun<'_>], page: &mut Markup) {
    page.section(
        "resources",
        "CPU, memory and disk over time",
        "What tsb used, generator and embedded store together, and what each watched process did: the store's own, local servers to which it is connected, and those of --watch-pid.",
    );
    page.plot(
        "cpu",
        None,
        "CPU",
        "Cores in use: CPU time over real time. It includes the generator, which spins for the last moments before an operation is due.",
    );
    page.plot(
        "memory",
        None,
        "Resident memory",
        "What the processes held in memory at the end of each interval. Memory that was freed may stay with the process.",
    );
    page.plot(
        "disk",
        None,
        "Disk",
        "Bytes per second that the kernel counts as read from and written to a medium. Writes are counted when they are made, and may reach the medium later.",
    );
    for run in shown {
        page.run_heading(run);
        processes(run, page);
    }
    page.end_section();
}

/// The columns of the table of processes, with their meanings.
const USED: &[Figure] = &[
    figure(
        "CPU, user",
        "user_cpu_ns",
        Unit::Nanos,
        "Time on a CPU in the program's own code.",
    ),
    figure(
        "CPU, kernel",
        "system_cpu_ns",
        Unit::Nanos,
        "Time on a CPU in the kernel for the program: sockets, files, page faults.",
    ),
    figure(
        "memory at most",
        "rss_bytes_max",
        Unit::Bytes,
        "The most that was ever resident, before the run included.",
    ),
    figure(
        "read",
        "read_bytes",
        Unit::Bytes,
        "From a medium; what the page cache answered is not in it.",
    ),
    figure("written", "written_bytes", Unit::Bytes, "To a medium, sooner or later."),
    figure(
        "CPU taken away",
        "involuntary_switches",
        Unit::Count,
        "Times that another thread took the CPU: many mean a busy machine.",
    ),
];

fn processes(shown: &PageRun<'_>, page: &mut Markup) {
    page.wide_table(shown, "processes");
    page.raw("<thead><tr><th scope=\"col\">process</th>");
    for column in USED {
        page.element("<th scope=\"col\">", column.name, "</th>");
    }
    page.raw("</tr></thead><tbody>\n");
    for (index, usage) in shown.run.resources.iter().enumerate() {
        page.element("<tr><th scope=\"row\">", &usage.name, "</th>");
        for column in USED {
            page.raw("<td>");
            page.number(shown, &format!("/resources/{index}/{}", column.at), column.unit);
            page.raw("</td>");
        }
        page.raw("</tr>\n");
    }
    page.raw("</tbody></table></div>\n<ul class=\"meanings\">\n");
    for column in USED {
        page.element("<li><strong>", column.name, "</strong>: ");
        page.element("", column.meaning, "</li>\n");
    }
    page.raw("</ul>\n");
}
