//! Files of odd names, files of others, and the mark of a run.

use std::fs;
use std::path::Path;
use std::process::Command;

use tsb_core::Timestamp;

use super::*;

fn place(spec: &str) -> Place {
    Place::of(&spec.parse().unwrap()).unwrap().unwrap()
}

/// Files of an RRD store in `folder`, and of others.
fn fill(folder: &Path) -> [PathBuf; 2] {
    fs::create_dir_all(folder.join("deep/er")).unwrap();
    for name in ["a.rrd", "deep/b{x=1}.rrd", "deep/er/c.rrd.new", "tsb.run"] {
        fs::write(folder.join(name), "x").unwrap();
    }
    fs::create_dir_all(folder.join("others")).unwrap();
    let foreign = ["others/rrd", "a.rrd.txt"].map(|name| folder.join(name));
    for path in &foreign {
        fs::write(path, "x").unwrap();
    }
    foreign
}

#[test]
fn files_of_other_programs_stay() {
    let folder = tempfile::tempdir().unwrap();
    for (name, by_command) in [("it's $HOME `x`; \"*", true), ("-rf", true), ("it's\n2", false)] {
        let root = folder.path().join(name);
        let place = place(&format!("rrd:{}", root.display()));
        let foreign = fill(&root);
        if by_command {
            let command = place.remove_command().unwrap();
            let output = Command::new("sh").args(["-c", &command]).output().unwrap();
            assert!(output.status.success(), "{command}: {output:?}");
        } else {
            place.remove().unwrap();
        }
        assert!(place.is_empty().unwrap(), "{name}");
        let left = |folder: &Path| fs::read_dir(folder).unwrap().count();
        assert_eq!((left(&root), left(&root.join("others"))), (2, 1), "{name}");
        for path in foreign {
            fs::remove_file(path).unwrap();
        }
        fs::remove_dir(root.join("others")).unwrap();
        place.remove().unwrap();
        assert!(!root.exists(), "an empty folder is removed too");
    }
}

#[test]
fn a_symbolic_link_stands_for_what_it_points_at() {
    let folder = tempfile::tempdir().unwrap();
    let (root, link) = (folder.path().join("root"), folder.path().join("link"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a.rrd"), "x").unwrap();
    std::os::unix::fs::symlink(&root, &link).unwrap();
    let place = place(&format!("rrd:{}", link.display()));
    assert!(place.remove_command().unwrap().contains("/root'"));
    place.remove().unwrap();
    assert!(!root.exists() && place.is_empty().unwrap());
}

#[cfg(feature = "sqlite")]
#[test]
fn a_database_has_its_files_beside_it_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let own = ["x.db", "x.db-wal", "x.db-lock", "x.db-run", "x.db-wal.damaged-2"];
    let others = ["x.db-wal.damaged", "x.db-backup", "y.db", "ax.db-wal.damaged-1"];
    let place = place(&format!("sqlite:{}", path("x.db").display()));
    let (by_shell, by_call): (&dyn Fn(), &dyn Fn()) = (
        &|| {
            let command = place.remove_command().unwrap();
            let status = Command::new("sh").args(["-c", &command]).status().unwrap();
            assert!(status.success(), "{command}");
        },
        &|| place.remove().unwrap(),
    );
    for remove in [by_shell, by_call] {
        for name in own.iter().chain(&others) {
            fs::write(path(name), vec![1; 5_000]).unwrap();
        }
        // The mark of a run is no part of its size.
        assert_eq!(place.disk_bytes(), Some(4 * 8_192));
        remove();
        assert!(own.iter().all(|name| !path(name).exists()) && place.is_empty().unwrap());
        assert!(others.iter().all(|name| path(name).exists()));
    }
}

#[test]
fn each_round_has_a_spec_of_its_own() {
    for (spec, round, expected) in [
        ("memory:", 3, "memory:"),
        ("rrd:/x/y", 3, "rrd:/x/y-round-3"),
        ("rrd:/x/y/?step=1s", 12, "rrd:/x/y-round-12?step=1s"),
        (
            "write-cache+rrd:/x?write-cache.journal=/j&step=1s",
            1,
            "write-cache+rrd:/x-round-1?write-cache.journal=/j-round-1&step=1s",
        ),
        ("write-cache+rrd:/x", 1, "write-cache+rrd:/x-round-1"),
        ("rrdcached:unix:/s", 2, "rrdcached:unix:/s?prefix=round-2-"),
        ("rrdcached:unix:/s?prefix=a-", 2, "rrdcached:unix:/s?prefix=a-round-2-"),
    ] {
        let spec: Spec = spec.parse().unwrap();
        let own = spec.of_round(round);
        assert_eq!(own.to_string(), expected);
        assert_eq!(own.to_string().parse::<Spec>().unwrap(), own);
    }
}

#[test]
fn a_daemon_has_files_that_no_client_removes() {
    let place = place("rrdcached:unix:/s?prefix=a-");
    assert_eq!(place.to_string(), "files a-*.rrd of the daemon at /s");
    assert_eq!((place.remove_command(), place.disk_bytes()), (None, None));
    let refused = place.remove().unwrap_err();
    assert!(
        refused.explanation().hint().unwrap().contains("folder of the server"),
        "{refused}"
    );
}

#[test]
fn a_mark_goes_on_until_it_is_removed_or_its_process_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(&format!("rrd:{}", folder.path().display()));
    let journal = folder.path().join("r.journal");
    fs::write(&journal, "").unwrap();
    let at = Timestamp::from_secs(1_700_000_000);
    let mark = RunMark::make(&place, at, Some(&journal)).unwrap().unwrap();
    let found = place.earlier_run().unwrap().unwrap();
    assert_eq!(
        (found.state, found.pid, found.began),
        (EarlierRunState::GoesOn, Some(std::process::id()), Some(at))
    );
    let second = RunMark::make(&place, at, None).unwrap_err();
    assert!(second.to_string().contains("2023-11-14T22:13:20Z"), "{second}");
    assert!(second.to_string().contains("goes on there"), "{second}");
    assert!(
        place.remove().is_err(),
        "the place of a run that goes on is not removed"
    );
    // The end of a process closes its files, and removes none.
    drop(mark);
    let found = place.earlier_run().unwrap().unwrap();
    assert_eq!(
        (found.state, found.journal),
        (EarlierRunState::Ended, Some(journal.clone()))
    );
    let words = place.earlier_run().unwrap().unwrap().to_string();
    assert!(
        words.contains("was killed there") && words.contains("tsb verify"),
        "{words}"
    );
    // A later run takes it over, and removes it.
    let mark = RunMark::make(&place, at, None).unwrap().unwrap();
    mark.remove().unwrap();
    assert_eq!(place.earlier_run().unwrap(), None);
}

#[test]
fn half_a_mark_is_one_of_which_nothing_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(&format!("rrd:{}", folder.path().display()));
    for bytes in [&b""[..], b"{\"pid\":12", b"\xff\0", b"[]"] {
        fs::write(folder.path().join("tsb.run"), bytes).unwrap();
        let found = place.earlier_run().unwrap().unwrap();
        assert_eq!(
            (found.state, found.pid, found.began),
            (EarlierRunState::Ended, None, None)
        );
        assert_eq!(found.to_string(), "a run was killed there, or ended without closing it");
    }
    place.remove().unwrap();
    assert!(!folder.path().exists());
    fs::create_dir(folder.path()).unwrap();
}

#[cfg(feature = "client")]
#[test]
fn a_part_of_a_server_is_named_without_credentials() {
    #[cfg(feature = "mongo")]
    {
        let place = place("mongo://me:hunter2@h:1,i/db?replica_set=r&tls=1&tls_ca=/a b");
        assert_eq!(place.to_string(), "database db at h:1,i");
        assert_eq!(
            place.remove_command().unwrap(),
            "mongosh 'mongodb://h:1,i/db?replicaSet=r' --tls --tlsCAFile '/a b' --eval 'db.dropDatabase()'"
        );
        let round = "mongo://h/db".parse::<Spec>().unwrap().of_round(4);
        assert_eq!(round.to_string(), "mongo://h/db-round-4");
    }
    #[cfg(feature = "etcd")]
    {
        let place = place("etcd://me:hunter2@h:1,i/p");
        assert_eq!(place.to_string(), "prefix p at h:1,i");
        assert_eq!(
            place.remove_command().unwrap(),
            "etcdctl --endpoints 'h:1,i:2379' del --prefix 'p/'"
        );
    }
    #[cfg(feature = "postgres")]
    {
        let place = place("postgres://me:hunter2@h:1,i/db?schema=s&tls=1&tls_ca=/a b");
        assert_eq!(place.to_string(), "schema s of database db at h:1,i");
        assert_eq!(
            place.remove_command().unwrap(),
            "psql 'postgresql://h:1,i/db?sslmode=verify-full&sslrootcert=/a b&target_session_attrs=read-write' -c \
             'DROP SCHEMA \"s\" CASCADE'"
        );
        let round = "postgres://h/db".parse::<Spec>().unwrap().of_round(4);
        assert_eq!(round.to_string(), "postgres://h/db?schema=tsb-round-4");
    }
    #[cfg(feature = "cassandra")]
    {
        let place = place("cassandra://me:hunter2@h:1,i/k");
        assert_eq!(place.to_string(), "keyspace k at h:1,i");
        assert_eq!(
            place.remove_command().unwrap(),
            "cqlsh 'h' 1 -e 'DROP KEYSPACE IF EXISTS \"k\"'"
        );
        let round = "cassandra://h/k".parse::<Spec>().unwrap().of_round(4);
        assert_eq!(round.to_string(), "cassandra://h/k_round_4");
    }
    #[cfg(feature = "graphite")]
    {
        let place = place("graphite://me:hunter2@h:1,i/p?folder=/w");
        assert_eq!(place.to_string(), "prefix p at h:1,i");
        assert_eq!(place.remove_command().unwrap(), "rm -r '/w/p'");
        let unknown: Spec = "graphite://h/p".parse().unwrap();
        assert_eq!(Place::of(&unknown).unwrap().unwrap().remove_command(), None);
    }
}
