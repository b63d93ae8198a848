//! Opens a page as long as that of an hour at one-second intervals, and reports its size, its
//! load time and the time of a zoom step, without limits.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{page_of, run_for, screen};
use crate::browser::Browser;

/// The run has as many intervals as an hour has seconds, folded to about 1,024 of them.
const FOLDED: u64 = 1_000;

/// Steps of zooming that are timed.
const STEPS: usize = 20;

/// Opens such a page and says what was measured.
pub(super) fn look(browser: &mut Browser, folder: &Path) -> Result<String> {
    let arguments = ["--duration", "18s", "--report-interval", "5ms", "--transport", "tcp"];
    let report = run_for(&folder.join("hour.json"), &arguments)?;
    let intervals = report["intervals"].as_array().map_or(0, Vec::len) as u64;
    if intervals < FOLDED {
        bail!("a run of 3,600 intervals reports {intervals}");
    }
    let page = page_of(folder, &["hour.json"], "hour.html")?;
    let bytes = std::fs::metadata(&page)?.len();
    browser.open(&page, screen(1400, false))?;
    // Ten keys zoom in, ten move along; after each, the next frame has been drawn.
    let times = browser.evaluate(&format!(
        "(async () => {{
          const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
          const loaded = performance.getEntriesByType('navigation')[0].loadEventEnd;
          const plot = document.querySelector('figure[data-plot=heat] .canvas');
          plot.focus();
          const times = [];
          for (let step = 0; step < {STEPS}; step += 1) {{
            const span = document.getElementById('span').textContent;
            await drawn();
            const begun = performance.now();
            document.querySelector(step < {STEPS} / 2 ? '[data-zoom=in]' : '[data-zoom=left]').click();
            await drawn();
            times.push(performance.now() - begun);
            if (step === 0 && document.getElementById('span').textContent === span) throw 'no zoom';
          }}
          return [loaded, ...times];
        }})()"
    ))?;
    let mut times: Vec<f64> = times
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(serde_json::Value::as_f64)
        .collect();
    if times.len() != STEPS + 1 {
        bail!("the page measured {times:?}");
    }
    let loaded = times.remove(0);
    times.sort_by(f64::total_cmp);
    let slowest = times.last().context("no step was timed")?;
    Ok(format!(
        "{intervals} intervals: {} KB, loaded in {loaded:.0} ms, a step of zooming drawn in {:.0} ms, at most {slowest:.0} ms",
        bytes / 1000,
        times[times.len() / 2],
    ))
}
