//! Reads the credentials of servers from the environment: `TSB_CREDENTIALS_` and the scheme in
//! capitals.
//!
//! Credentials in the spec itself, in its address or in the file that its option `credentials`
//! names, have precedence. Plans and reports contain neither.

use tsb_run::spec::Spec;
use tsb_run::{Error, OpenedStore, Plan};
use tsb_stores::secret::Credentials;

/// The variable that holds `user:password` for a kind of server.
pub fn variable(scheme: &str) -> String {
    format!("TSB_CREDENTIALS_{}", scheme.to_ascii_uppercase())
}

/// Adds the credentials of the environment to a spec that has none. An empty variable counts as
/// absent.
///
/// # Errors
/// If the variable does not contain `user:password`.
pub fn complete(spec: &Spec) -> Result<Spec, Error> {
    from(spec, |name| std::env::var_os(name))
}

/// Opens the first store of a plan, with its credentials.
///
/// # Errors
/// If the plan names no store, or it cannot be opened.
pub fn open(plan: &Plan) -> Result<OpenedStore, Error> {
    let stores = plan.stores.iter().take(1).map(complete).collect::<Result<_, _>>()?;
    tsb_run::open(&Plan { stores, ..plan.clone() })
}

fn from(spec: &Spec, variable_of: impl Fn(&str) -> Option<std::ffi::OsString>) -> Result<Spec, Error> {
    if !spec.lacks_credentials() {
        return Ok(spec.clone());
    }
    let name = variable(spec.scheme());
    let Some(value) = variable_of(&name).filter(|value| !value.is_empty()) else {
        return Ok(spec.clone());
    };
    let wrong = |why: &str| {
        Error::plan(format!("cannot use the variable {name}"))
            .because_of(why.to_owned())
            .hint(format!(
                "unset it, or put user:password into a file and name it with {}:...?credentials=FILE",
                spec.scheme()
            ))
    };
    let text = value.to_str().ok_or_else(|| wrong("it is not text"))?;
    let credentials = Credentials::parse(text).map_err(wrong)?;
    Ok(spec.with_credentials(credentials))
}

#[cfg(all(test, feature = "etcd"))]
mod tests {
    use super::*;

    fn completed(spec: &str, value: Option<&str>) -> Result<Spec, String> {
        let spec: Spec = spec.parse().map_err(|error: tsb_stores::Error| error.to_string())?;
        let given = from(&spec, |name| {
            (name == "TSB_CREDENTIALS_ETCD")
                .then(|| value.map(Into::into))
                .flatten()
        });
        given.map_err(|error| crate::failure::Failure::from(error).to_string())
    }

    #[test]
    fn the_environment_comes_last() {
        for (spec, value, shown) in [
            ("etcd://h/p", Some("me:hunter2"), "etcd://***@h/p"),
            ("etcd://h/p", Some(""), "etcd://h/p"),
            ("etcd://h/p", None, "etcd://h/p"),
            (
                "etcd://h/p?credentials=/x",
                Some("me:hunter2"),
                "etcd://h/p?credentials=/x",
            ),
            ("memory:", Some("me:hunter2"), "memory:"),
        ] {
            assert_eq!(completed(spec, value).unwrap().to_string(), shown);
        }
        let own = completed("etcd://you:x@h/p", Some("me:hunter2")).unwrap();
        assert_eq!(own, "etcd://you:x@h/p".parse().unwrap());
    }

    #[test]
    fn a_wrong_variable_is_named_and_not_quoted() {
        let why = completed("etcd://h/p", Some("hunter2")).unwrap_err();
        assert!(
            why.contains("TSB_CREDENTIALS_ETCD") && why.contains("no colon"),
            "{why}"
        );
        assert!(!why.contains("hunter2") && why.contains("hint:"), "{why}");
    }
}
