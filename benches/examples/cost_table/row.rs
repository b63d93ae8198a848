//! One line of the table: medians over the rounds.

use crate::alone::Alone;
use crate::cases::Case;
use crate::reported::Reported;

/// The results of all rounds of a case.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) reported: Vec<Reported>,
    pub(crate) alone: Vec<Alone>,
}

impl Row {
    /// The column headings.
    pub(crate) fn heading() -> &'static str {
        "\
                                                    tsb run: ns of CPU per sample                                         store alone         run / alone
store            batch  generator  pacing    store  threads    flush   newest  watching      sum  process  sum/process     write  threads    flush"
    }

    /// The medians in columns.
    pub(crate) fn line(&self, case: &Case) -> String {
        let run = |part: fn(&Reported) -> f64| median(self.reported.iter().map(part));
        let alone = |part: fn(&Alone) -> f64| median(self.alone.iter().map(part));
        // One ratio per run: the parts of a run are compared with its own process.
        let whole = median(self.reported.iter().map(|run| run.sum() / run.process));
        let told = || {
            let ratio = run(Reported::of_store) / alone(|alone| alone.write + alone.threads + alone.flush);
            (format!("{:.2}", run(|run| run.store)), format!("{ratio:.3}"))
        };
        let below = self.below().map(|below| (format!("<{below:.2}"), "-".to_owned()));
        let (store, ratio) = below.unwrap_or_else(told);
        format!(
            "{:15}  {:5}  {:9.2}  {:6.2}  {store:>7}  {:7.2}  {:7.2}  {:7.2}  {:8.2}  {:7.2}  {:7.2}  {:11.3}  {:8.2}  {:7.2}  {:7.2}  {ratio:>11}",
            case.name,
            case.batch,
            run(|run| run.generator),
            run(|run| run.pacing),
            run(|run| run.threads),
            run(|run| run.flush),
            run(|run| run.newest),
            run(|run| run.watching),
            run(Reported::sum),
            run(|run| run.process),
            whole,
            alone(|alone| alone.write),
            alone(|alone| alone.threads),
            alone(|alone| alone.flush),
        )
    }

    /// Median upper bound of the store's part, if a report could not measure it.
    fn below(&self) -> Option<f64> {
        let below: Vec<f64> = self.reported.iter().filter_map(|run| run.below).collect();
        (!below.is_empty()).then(|| median(below.into_iter()))
    }
}

fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    let count = figures.len();
    f64::midpoint(figures[(count - 1) / 2], figures[count / 2])
}
