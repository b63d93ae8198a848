//! Cells of the page. A cell without a figure is a dash, and says why; one whose figure needs a word has it
//! there, too.

use serde_json::Value;

use super::plan::SIZES;

/// Digits of a commit that are enough to find it.
const COMMIT_LENGTH: usize = 12;

/// A cell, and what the notes below its table say of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) why: Option<String>,
}

impl Cell {
    fn of(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            why: None,
        }
    }

    fn absent(why: impl Into<String>) -> Self {
        Self::with_note("-", why)
    }

    fn with_note(text: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            why: Some(why.into()),
        }
    }
}

/// The level at which a row's writes are acknowledged, by either fixed run.
pub(super) fn level(row: &Value) -> &str {
    of_fixed(row, "acknowledged")
        .and_then(Value::as_str)
        .unwrap_or("not known")
}

/// On how many members a sample is that is acknowledged.
pub(super) fn copies(row: &Value) -> u64 {
    of_fixed(row, "copies").and_then(Value::as_u64).unwrap_or(1)
}

fn of_fixed<'a>(row: &'a Value, name: &str) -> Option<&'a Value> {
    let steps = SIZES.map(|size| row["steps"][format!("fixed-{size}")].get(name));
    steps.into_iter().flatten().next()
}

/// The commit, and whether there were changes.
pub(super) fn commit(row: &Value) -> String {
    let commit = row["commit"].as_str().unwrap_or("?");
    let changed = if commit.ends_with("changes") {
        " with changes"
    } else {
        ""
    };
    let short: String = commit
        .chars()
        .take_while(char::is_ascii_hexdigit)
        .take(COMMIT_LENGTH)
        .collect();
    format!("{short}{changed}")
}

pub(super) fn version(row: &Value) -> Cell {
    match row["version"].as_str() {
        Some(version) => Cell::of(version),
        None if row["is_server"] == false => Cell::of("ours"),
        None => Cell::absent("the version could not be asked"),
    }
}

pub(super) fn measured(row: &Value) -> Cell {
    Cell::of(format!("{} at {}", row["date"].as_str().unwrap_or("?"), commit(row)))
}

/// The capacity; where something else than the store was the limit, the highest load that held.
pub(super) fn capacity(row: &Value) -> Cell {
    let step = &row["steps"]["capacity"];
    if !step.is_object() {
        return Cell::absent("the search failed");
    }
    // What would have to be told to `tsb` instead stands behind the colon.
    let why = step["why"].as_str().and_then(|why| why.split(": ").next());
    let why = || why.unwrap_or("no reason is known").to_owned();
    let unread = row["unread_probes"]
        .as_str()
        .filter(|why| !why.is_empty())
        .map(str::to_owned);
    let notes: Vec<String> = [delay_note(row, step), unread].into_iter().flatten().collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    match (number(step, "found_per_second"), number(step, "low_per_second")) {
        (Some(found), _) => Cell {
            text: thousands(found),
            why: note,
        },
        (None, Some(low)) => {
            let notes: Vec<String> = std::iter::once(why()).chain(notes).collect();
            Cell::with_note(format!("at least {}", thousands(low)), notes.join("; "))
        }
        (None, None) => Cell::absent(why()),
    }
}

/// A probe that ends before the objective can be missed says only what was held.
fn delay_note(row: &Value, step: &Value) -> Option<String> {
    let (delay_ms, probe_s) = (step["visibility_delay_ms"].as_u64()?, row["seconds"]["probe"].as_u64()?);
    (delay_ms >= probe_s * 1_000).then(|| {
        format!(
            "a probe of {probe_s} s is shorter than the stated delay of {} s, so the search found what the server \
             takes in without falling behind, and staleness could not decide",
            delay_ms / 1_000
        )
    })
}

pub(super) fn interval(row: &Value) -> Cell {
    let step = &row["steps"]["capacity"];
    let bounds = (
        number(step, "found_per_second"),
        number(step, "low_per_second"),
        number(step, "high_per_second"),
    );
    match bounds {
        (Some(_), Some(low), Some(high)) => Cell::of(format!("{}..{}", thousands(low), thousands(high))),
        _ => Cell::of("-"),
    }
}

/// What was the limit, in the words of `tsb capacity`.
pub(super) fn limited_by(row: &Value) -> Cell {
    match row["steps"]["capacity"]["limited_by"].as_str() {
        Some("budget") => Cell::of("the time of the search"),
        Some("generator") => Cell::of("the generator (this machine)"),
        Some(other) => Cell::of(other),
        None => Cell::of("-"),
    }
}

/// Samples that the killed store had acknowledged, or that were sent where nothing is acknowledged.
pub(super) fn acknowledged(row: &Value) -> Cell {
    let step = &row["steps"]["kill"];
    if step["everything"] == true {
        return Cell::absent("the store is the memory of the process, and goes with it");
    }
    match kill_count(step) {
        Some(count) if is_unconfirmed(step) => {
            Cell::with_note(thousands(count), "nothing is acknowledged: these were sent")
        }
        Some(count) => match number(step, "unknown").filter(|&unknown| unknown > 0.0) {
            Some(unknown) => {
                let why = format!(
                    "{} more were in requests that the kill left without an answer",
                    thousands(unknown)
                );
                Cell::with_note(thousands(count), &why)
            }
            None => Cell::of(thousands(count)),
        },
        None => Cell::absent("the step failed"),
    }
}

/// What of it was gone.
pub(super) fn lost(row: &Value) -> Cell {
    let step = &row["steps"]["kill"];
    if step["everything"] == true {
        return Cell::of("everything");
    }
    if step["verdict"] == "UNVERIFIED" && number(step, "verified").is_some_and(|verified| verified == 0.0) {
        return Cell::absent(step["reason"].as_str().unwrap_or("nothing could be read back"));
    }
    let name = if is_unconfirmed(step) {
        "lost_in_transport"
    } else {
        "lost"
    };
    match (
        number(step, name),
        number(step, "lost_at_most").filter(|&most| most > 0.0),
    ) {
        (Some(lost), Some(most)) => Cell::of(format!("{}..{}", thousands(lost), thousands(most))),
        (Some(lost), None) => Cell::of(thousands(lost)),
        (None, _) => Cell::absent("the step failed"),
    }
}

/// Whether nothing was acknowledged in the run of a kill.
fn is_unconfirmed(step: &Value) -> bool {
    step["confirmed"] == 0 && step["unknown"] == step["sent"]
}

fn kill_count(step: &Value) -> Option<f64> {
    if is_unconfirmed(step) {
        number(step, "sent")
    } else {
        number(step, "confirmed").or_else(|| number(step, "accepted"))
    }
}

pub(super) fn verdict(step: &Value) -> Cell {
    if step["is_stopped"] == true {
        let verdict = step["verdict"].as_str().unwrap_or("-");
        return Cell::with_note(
            verdict,
            "reading back took too long and was stopped, so not everything was compared",
        );
    }
    match (step["verdict"].as_str(), step["reason"].as_str()) {
        (Some(verdict), Some(reason)) => Cell::with_note(verdict, reason.trim_end_matches('.')),
        (Some(verdict), None) => Cell::of(verdict),
        (None, _) => Cell::absent("the run failed"),
    }
}

pub(super) fn held(step: &Value) -> Cell {
    number(step, "held_per_second").map_or_else(|| Cell::of("-"), |held| Cell::of(thousands(held)))
}

/// Whether a run's figures mean anything.
fn is_sound(step: &Value) -> bool {
    step["verdict"] != "INVALID"
}

/// A figure of a run; of a failed or invalid one a dash without a word, which the verdict has.
fn figure(step: &Value, name: &str, why: &str, text: impl Fn(f64) -> String) -> Cell {
    if step["verdict"].is_null() || !is_sound(step) {
        return Cell::of("-");
    }
    number(step, name).map_or_else(|| Cell::absent(why), |value| Cell::of(text(value)))
}

pub(super) fn milliseconds(step: &Value, name: &str) -> Cell {
    figure(step, name, "too few operations for this quantile", |ns| {
        digits(ns / 1e6)
    })
}

pub(super) fn staleness(step: &Value) -> Cell {
    let mut cell = figure(step, "staleness_p99_ms", "it cannot be measured", |ms| digits(ms / 1e3));
    if let Some(delay_ms) = number(step, "visibility_delay_ms").filter(|_| cell.text != "-") {
        cell.why = Some(format!("its stated delay of {} s is within", digits(delay_ms / 1e3)));
    }
    cell
}

pub(super) fn cpu(step: &Value) -> Cell {
    let why = "the CPU time of its processes or parts is not known";
    let cell = figure(step, "cpu_s_per_million", why, digits);
    if step["is_of_tree"] != true || cell.text == "-" {
        return cell;
    }
    let note = "CPU time is of all processes that it has started, in a run of their own; memory is what they have after it, \
                without those that served the connections";
    Cell::with_note(cell.text, note)
}

pub(super) fn mebibytes(step: &Value, name: &str) -> Cell {
    figure(step, name, "it is not known", |bytes| {
        thousands(bytes / f64::from(1 << 20))
    })
}

/// The name of the bytes per sample that count: blocks of the file system where they are known, else what the
/// store counts.
pub(super) fn bytes_name(step: &Value) -> &'static str {
    if step["disk_bytes_per_sample"].is_number() {
        "disk_bytes_per_sample"
    } else {
        "bytes_per_sample"
    }
}

pub(super) fn bytes(step: &Value) -> Cell {
    figure(
        step,
        bytes_name(step),
        "the server does not say how much it stores",
        digits,
    )
}

pub(super) fn query(step: &Value, name: &str) -> Cell {
    let stream = &step["streams"][name];
    if !is_sound(step) || number(stream, "wrong").is_some_and(|wrong| wrong > 0.0) {
        return Cell::absent("an answer was wrong, or the run INVALID");
    }
    match (number(stream, "p50_ns"), number(stream, "p90_ns")) {
        (Some(p50), Some(p90)) => Cell::of(format!("{} / {}", digits(p50 / 1e6), digits(p90 / 1e6))),
        (Some(p50), None) => Cell::of(format!("{} / -", digits(p50 / 1e6))),
        _ => Cell::absent("too few answers"),
    }
}

pub(super) fn number(value: &Value, name: &str) -> Option<f64> {
    value[name].as_f64()
}

/// A whole number with commas.
pub(super) fn thousands(number: f64) -> String {
    let text = format!("{number:.0}");
    let mut grouped = String::new();
    for (place, digit) in text.chars().enumerate() {
        if place > 0 && (text.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number with about three digits that count.
pub(super) fn digits(number: f64) -> String {
    match number.abs() {
        size if size >= 1_000.0 => thousands(number),
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 1.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn searched(step: &Value) -> Value {
        json!({ "steps": { "capacity": step }, "seconds": { "probe": 5 } })
    }

    #[test]
    fn a_capacity_that_was_not_found_says_what_held_and_why() {
        let row = searched(
            &json!({ "found_per_second": 216_000.4, "low_per_second": 1e5, "high_per_second": 3e5, "limited_by": "store" }),
        );
        assert_eq!(
            (capacity(&row), interval(&row).text),
            (Cell::of("216,000"), "100,000..300,000".to_owned())
        );
        let row = searched(&json!({ "low_per_second": 54_000, "limited_by": "generator", "why": "it was late" }));
        assert_eq!(capacity(&row), Cell::with_note("at least 54,000", "it was late"));
        assert_eq!(
            (interval(&row).text.as_str(), limited_by(&row).text.as_str()),
            ("-", "the generator (this machine)")
        );
        assert_eq!(
            capacity(&searched(&json!({ "why": "no load held" }))),
            Cell::absent("no load held")
        );
        assert_eq!(capacity(&json!({})).text, "-");
    }

    #[test]
    fn a_probe_shorter_than_the_delay_is_said_to_be() {
        let of = |delay_ms: u64| searched(&json!({ "found_per_second": 1, "visibility_delay_ms": delay_ms }));
        assert!(capacity(&of(15_000)).why.is_some_and(|why| why.contains("15 s")));
        assert_eq!(capacity(&of(0)).why, None);
    }

    #[test]
    fn an_invalid_run_has_a_reason_and_no_figures() {
        let step = json!({ "verdict": "INVALID", "reason": "5 samples were lost", "response_p50_ns": 5 });
        assert_eq!(verdict(&step), Cell::with_note("INVALID", "5 samples were lost"));
        assert_eq!(milliseconds(&step, "response_p50_ns"), Cell::of("-"));
        let step = json!({ "verdict": "NOISY", "response_p50_ns": 1_500_000 });
        assert_eq!(milliseconds(&step, "response_p50_ns"), Cell::of("1.50"));
        assert!(milliseconds(&step, "response_p99_ns").why.is_some());
        assert_eq!(verdict(&json!(null)).text, "-");
        let step = json!({ "verdict": "VALID", "cpu_s_per_million": 30.0, "is_of_tree": true });
        assert!(cpu(&step).text == "30.0" && cpu(&step).why.is_some());
    }

    #[test]
    fn what_a_kill_took_is_of_what_was_acknowledged() {
        let killed = |step: Value| json!({ "steps": { "kill": step } });
        let row = killed(json!({ "accepted": 14_000, "lost": 2_000 }));
        assert_eq!(
            (acknowledged(&row), lost(&row)),
            (Cell::of("14,000"), Cell::of("2,000"))
        );
        // One request was left without an answer: what was in it was not acknowledged, and is not lost.
        let row = killed(json!({
            "sent": 18_000, "confirmed": 17_950, "unknown": 50, "accepted": 17_950, "lost": 0, "lost_in_transport": 50,
        }));
        assert_eq!(
            (acknowledged(&row).text.as_str(), lost(&row).text.as_str()),
            ("17,950", "0")
        );
        assert!(acknowledged(&row).why.is_some_and(|why| why.starts_with("50 more")));
        let row = killed(json!({
            "sent": 18_000, "confirmed": 0, "unknown": 18_000, "accepted": 17_950, "lost": 0, "lost_in_transport": 50,
        }));
        assert_eq!(
            (acknowledged(&row).text.as_str(), lost(&row).text.as_str()),
            ("18,000", "50")
        );
        let row = killed(json!({ "everything": true }));
        assert_eq!(
            (acknowledged(&row).text.as_str(), lost(&row).text.as_str()),
            ("-", "everything")
        );
        assert_eq!(lost(&killed(json!(null))).text, "-");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [thousands(999.6), thousands(1_234_567.0), thousands(0.2)],
            ["1,000", "1,234,567", "0"]
        );
        assert_eq!(
            [digits(0.0042), digits(4.218), digits(42.18), digits(421.8)],
            ["0.004", "4.22", "42.2", "422"]
        );
    }
}
