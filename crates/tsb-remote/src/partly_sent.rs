//! The error of a write of several requests.

use tsb_stores::Error;

/// The error of a request of a write; `is_partly_sent`: an earlier request of the write was answered.
/// Then the write as a whole is neither unsent nor refused, whatever became of this request.
pub(crate) fn of_write(is_partly_sent: bool, error: Error) -> Error {
    match error {
        Error::Unreachable { action, source }
        | Error::Unanswered { action, source }
        | Error::Backend { action, source }
            if is_partly_sent =>
        {
            Error::Unknown { action, source }
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_was_sent_in_part_is_of_unknown_outcome() {
        let action = || "write samples".to_owned();
        let errors = [
            Error::Unreachable {
                action: action(),
                source: "refused".into(),
            },
            Error::Unanswered {
                action: action(),
                source: "silent".into(),
            },
            Error::Backend {
                action: action(),
                source: "404".into(),
            },
        ];
        for error in errors {
            assert!(matches!(of_write(true, error), Error::Unknown { .. }));
        }
        assert!(matches!(of_write(true, Error::Closed), Error::Closed));
        let unreachable = Error::Unreachable {
            action: action(),
            source: "refused".into(),
        };
        assert!(matches!(of_write(false, unreachable), Error::Unreachable { .. }));
    }
}
