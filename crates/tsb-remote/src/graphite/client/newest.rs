//! The newest slots of many series: the newest few of each, and all of the finest archive for those
//! without any among them.

use tsb_core::Timestamp;

use super::super::cursor::SERIES_MAX;
use super::super::render::{Render, Window};
use super::GraphiteClient;
use tsb_stores::error::Result;
use tsb_stores::parts::read;

/// Number of slots of the first look.
const NEAR_SLOTS: i64 = 32;

impl GraphiteClient {
    pub(super) async fn newest_of(
        &self,
        render: &Render,
        numbers: &[u32],
        into: &mut [Option<Timestamp>],
    ) -> Result<()> {
        into.fill(None);
        let near_s = render.now_s() - NEAR_SLOTS * self.archives[0].slot_s;
        for from_s in [near_s, i64::MIN] {
            let open: Vec<usize> = (0..numbers.len()).filter(|place| into[*place].is_none()).collect();
            for places in open.chunks(SERIES_MAX) {
                let window = self.window_from(render, from_s);
                self.newest_in(render, window, numbers, places, into).await?;
            }
        }
        Ok(())
    }

    async fn newest_in(
        &self,
        render: &Render,
        window: Window,
        numbers: &[u32],
        places: &[usize],
        into: &mut [Option<Timestamp>],
    ) -> Result<()> {
        let paths: Vec<String> = {
            let paths = read(&self.paths);
            let path_of = |place: &usize| paths.get(numbers[*place] as usize).cloned().unwrap_or_default();
            places.iter().map(path_of).collect()
        };
        // A file that cannot be read may be one that is being made.
        let slots = render.read(&paths, window).await?.slots;
        for (place, path) in places.iter().zip(&paths) {
            let newest = slots.get(path).and_then(|slots| slots.last());
            into[*place] = newest.map(|(start_s, _)| Timestamp::from_secs(*start_s));
        }
        Ok(())
    }
}
