//! Checks the report page in a real browser: no errors, no requests besides the page itself,
//! working zoom and keys, no serious axe-core findings, and figures equal to the JSON.

mod hour;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Outcome;
use crate::browser::{Browser, Screen, missing};
use crate::shell::{capture, capture_any, cargo, has, target_folder};

/// The version of axe-core that judges.
const AXE: &str = "axe-core@4.14.1";

/// The screen sizes and colour schemes that are checked.
const SCREENS: [Screen; 4] = [
    screen(1400, false),
    screen(1400, true),
    screen(400, false),
    screen(400, true),
];

const fn screen(width: u32, is_dark: bool) -> Screen {
    Screen {
        width,
        height: 900,
        is_dark,
    }
}

/// Opens the page of a short run, and one of two runs side by side.
pub(super) fn check() -> Result<Outcome> {
    if let Some(why) = missing() {
        return Ok(Outcome::NotRun(why));
    }
    let folder = target_folder()?.join("page");
    std::fs::create_dir_all(&folder)?;
    let axe = axe(&folder);
    let pages = pages(&folder)?;
    let mut browser = Browser::start()?;
    for (page, report) in &pages {
        for screen in SCREENS {
            browser.open(page, screen)?;
            let about = format!("{} at {} pixels", page.display(), screen.width);
            looks_right(&mut browser).with_context(|| about.clone())?;
            if let Ok(axe) = &axe {
                accessible(&mut browser, axe).with_context(|| about.clone())?;
            }
        }
        figures_are_those_of(&mut browser, report)?;
        zooms(&mut browser)?;
        reads_under_the_cursor(&mut browser)?;
        let paper = browser.print()?;
        if !paper.starts_with(b"%PDF") {
            bail!("{} cannot be printed", page.display());
        }
        stays_in_itself(&browser, page)?;
    }
    let hour = hour::look(&mut browser, &folder)?;
    let complaints = browser.complaints();
    if !complaints.is_empty() {
        bail!("the pages complain: {}", complaints.join("\n"));
    }
    Ok(Outcome::Passed(match axe {
        Ok(_) => format!("{} pages, {} screens, {AXE}; {hour}", pages.len(), SCREENS.len()),
        Err(why) => format!("without {AXE}: {why:#}; {hour}"),
    }))
}

/// A page of one run and one of two, each with the reports behind it.
fn pages(folder: &Path) -> Result<Vec<(PathBuf, Vec<Value>)>> {
    let short = ["--duration", "3s", "--report-interval", "200ms"];
    let one = run_for(
        &folder.join("one.json"),
        &[&short, &["--transport", "tcp"][..]].concat(),
    )?;
    let two = run_for(
        &folder.join("two.json"),
        &[&short, &["--transport", "inproc"][..]].concat(),
    )?;
    let first = page_of(folder, &["one.json"], "one.html")?;
    let both = page_of(folder, &["one.json", "two.json"], "both.html")?;
    Ok(vec![(first, vec![one.clone()]), (both, vec![one, two])])
}

/// The report of a run with these arguments.
fn run_for(out: &Path, arguments: &[&str]) -> Result<Value> {
    let mut command = cargo(&["run", "--quiet", "--release", "--", "run", "--quiet", "--no-calibrate"]);
    command.args(["--workload", "mix", "--series", "5400"]).args(arguments);
    let (code, _) = capture_any(command.arg("--out").arg(out))?;
    if !matches!(code, Some(0 | 3)) {
        bail!("the run for {} ended with exit code {code:?}", out.display());
    }
    Ok(serde_json::from_str(&std::fs::read_to_string(out)?)?)
}

/// A page of reports in the folder.
fn page_of(folder: &Path, reports: &[&str], page: &str) -> Result<PathBuf> {
    let page = folder.join(page);
    let mut command = cargo(&["run", "--quiet", "--release", "--", "report"]);
    command.args(reports.iter().map(|name| folder.join(name)));
    capture(command.arg("--html").arg(&page))?;
    Ok(page)
}

/// Every plot has a canvas, and nothing is wider than the screen.
fn looks_right(browser: &mut Browser) -> Result<()> {
    let wide = browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")?;
    if wide != 0 {
        bail!("the page is {wide} pixels wider than the screen");
    }
    let empty = "[...document.querySelectorAll('figure[data-plot]')].filter((figure) => !figure.querySelector('canvas, .empty')).length";
    let empty = browser.evaluate(empty)?;
    if empty != 0 {
        bail!("{empty} plots are empty");
    }
    Ok(())
}

/// The numbers that the page shows are those at their places in the reports.
fn figures_are_those_of(browser: &mut Browser, reports: &[Value]) -> Result<()> {
    let figures =
        browser.evaluate("[...document.querySelectorAll('data')].map((data) => [data.dataset.at, data.value])")?;
    let figures = figures.as_array().context("no figures")?;
    if figures.len() < 50 {
        bail!("the page shows only {} figures", figures.len());
    }
    let reports = Value::Array(reports.to_vec());
    for figure in figures {
        let at = figure[0].as_str().unwrap_or_default();
        let shown = figure[1].as_str().unwrap_or_default();
        let expected = reports.pointer(at).map(ToString::to_string);
        if expected.as_deref() != Some(shown) {
            bail!("{at} is {shown} on the page and {expected:?} in the report");
        }
    }
    Ok(())
}

/// Dragging zooms every plot over time, a key shows everything again, and values are spoken.
fn zooms(browser: &mut Browser) -> Result<()> {
    let span = "document.getElementById('span').textContent";
    browser.evaluate(
        "scrollTo(0, document.querySelector('figure[data-plot=rate]').getBoundingClientRect().top + scrollY - 100)",
    )?;
    let whole = browser.evaluate(span)?;
    let area = browser.evaluate(
        "(({ left, top, width, height }) => [left, top, width, height])(document.querySelector('figure[data-plot=rate] .u-over').getBoundingClientRect())",
    )?;
    let number = |index: usize| area[index].as_f64().unwrap_or_default();
    let at = |share: f64| (number(0) + number(2) * share, number(1) + number(3) / 2.0);
    browser.drag(at(0.3), at(0.6))?;
    let zoomed = browser.evaluate(span)?;
    if zoomed == whole {
        bail!("dragging does not zoom: {zoomed}");
    }
    browser.evaluate("document.querySelector('figure[data-plot=heat] .canvas').focus()")?;
    browser.press("ArrowRight")?;
    let spoken = browser.evaluate("document.getElementById('spoken').textContent")?;
    if !spoken.as_str().is_some_and(|text| text.contains("p50")) {
        bail!("the arrow key speaks no values: {spoken}");
    }
    browser.press("Escape")?;
    let again = browser.evaluate(span)?;
    if again != whole {
        bail!("Escape shows {again} and not {whole}");
    }
    browser.evaluate("document.querySelectorAll('.behind').forEach((details) => { details.open = true; })")?;
    let rows = browser.evaluate(
        "new Promise((done) => setTimeout(() => done(document.querySelectorAll('.behind tbody tr').length), 100))",
    )?;
    if rows.as_u64().unwrap_or(0) < 20 {
        bail!("the tables behind the plots have {rows} rows");
    }
    Ok(())
}

/// Wherever the cursor stands on a heat map, the page says how many operations are there, or
/// that there are none.
fn reads_under_the_cursor(browser: &mut Browser) -> Result<()> {
    let said = browser.evaluate(
        "[...document.querySelectorAll('figure[data-plot=heat] .u-over')].map((over) => {
          const readout = over.closest(':has(> .readout)').lastElementChild;
          const { left, top, width, height } = over.getBoundingClientRect();
          const said = new Set();
          for (let x = 1; x < width; x += width / 40) {
            for (let y = 0; y <= height; y += 2) {
              const at = { clientX: left + x, clientY: top + y, bubbles: true };
              over.dispatchEvent(new MouseEvent('mousemove', at));
              said.add(readout.textContent);
            }
          }
          return [...said];
        })",
    )?;
    for plot in said.as_array().context("no heat map")? {
        let texts: Vec<&str> = plot
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let counts = texts.iter().filter(|text| text.contains(" operations took ")).count();
        if counts < 2
            || texts
                .iter()
                .any(|text| text.contains("undefined") || text.contains("NaN"))
        {
            bail!("under the cursor of a heat map stands {texts:?}");
        }
    }
    Ok(())
}

/// No request but for the page itself.
fn stays_in_itself(browser: &Browser, page: &Path) -> Result<()> {
    let requests = browser.requests();
    let is_page = |address: &String| {
        address.starts_with("file://") && Path::new(address).extension().is_some_and(|ending| ending == "html")
    };
    if let Some(other) = requests.iter().find(|address| !is_page(address)) {
        bail!("{} asks for {other}", page.display());
    }
    if requests.is_empty() {
        bail!("no request was seen: this check would see none");
    }
    Ok(())
}

/// The source of axe-core, from the package registry, kept in the target folder.
fn axe(folder: &Path) -> Result<String> {
    let source = folder.join("package/axe.min.js");
    if !source.exists() {
        if !has("npm", "--version") {
            bail!("there is no npm");
        }
        let archive = capture(Command::new("npm").args(["pack", "--silent", AXE]).current_dir(folder))?;
        let name = archive.lines().last().unwrap_or_default().to_owned();
        capture(Command::new("tar").args(["-xzf", &name]).current_dir(folder))?;
    }
    std::fs::read_to_string(&source).context("axe-core has no axe.min.js")
}

/// What axe-core calls serious or critical.
fn accessible(browser: &mut Browser, axe: &str) -> Result<()> {
    browser.evaluate(&format!("{axe}; true"))?;
    let found = browser.evaluate(
        "axe.run().then((result) => result.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')\
         .map(({ id, nodes }) => `${id}: ${nodes[0].html}`))",
    )?;
    let found = found.as_array().context("axe-core gave no result")?;
    if !found.is_empty() {
        bail!("axe-core finds {found:?}");
    }
    Ok(())
}
