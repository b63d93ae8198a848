//! Damaged files, made of sound ones from a seed; the long run is the example `fuzz_files`.

#[path = "support/damage.rs"]
mod damage;
#[path = "../../tsb-core/examples/fuzz/mutate.rs"]
#[expect(dead_code, reason = "the corpus here is made, not read")]
mod mutate;

use mutate::Mutator;

const ROUNDS: usize = 3_000;

#[test]
fn a_damaged_file_is_an_error_and_never_a_panic_or_an_overwrite() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = damage::corpus(folder.path()).unwrap();
    for sound in &corpus {
        assert!(damage::check(folder.path(), sound).unwrap());
        // Cut anywhere, it is none.
        for length in (0..sound.len()).step_by(97) {
            assert!(
                !damage::check(folder.path(), &sound[..length]).unwrap(),
                "cut to {length}"
            );
        }
    }
    let mut mutator = Mutator::new(7, corpus);
    let mut sound = 0;
    for _ in 0..ROUNDS {
        let input = mutator.next_input();
        sound += usize::from(damage::check(folder.path(), &input).unwrap());
    }
    // Else the mutations would never come past the first look.
    assert!(sound > ROUNDS / 100, "{sound} of {ROUNDS} were taken for sound");
}
