//! Flags that do nothing are refused, by every command; credentials are printed by none; and a
//! plan file says the same as flags.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use serde_json::Value;

use crate::output::{output_of, stderr};
use crate::program;

fn plan(arguments: &[&str]) -> Value {
    let output = output_of(&[&["run", "--print-plan"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A command line with something that does nothing, and the words that name it.
const IDLE: [(&[&str], &[&str]); 43] = [
    (
        &["run", "--query-workers", "2"],
        &["--query-workers", "nothing is queried"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--queries", "q1@1/s"],
        &["--queries"],
    ),
    (
        &["run", "--transport", "inproc", "--protocol", "graphite"],
        &["--protocol", "no wire"],
    ),
    (
        &["run", "--transport", "tcp", "--sockets", "30"],
        &["--sockets", "datagrams"],
    ),
    (&["run", "--sockets", "30"], &["--sockets", "--transport udp"]),
    (&["run", "--transport", "unix", "--datagram", "512"], &["--datagram"]),
    (
        &["run", "--transport", "inproc", "--receive-buffer", "1MiB"],
        &["--receive-buffer"],
    ),
    (&["run", "--transport", "unixgram", "--gso", "off"], &["--gso", "UDP"]),
    (&["run", "--transport", "tcp", "--gro", "off"], &["--gro", "UDP"]),
    (&["run", "--in-flight", "8"], &["--in-flight", "--workers"]),
    (
        &["run", "--store", "rrdcached:unix:/x", "--in-flight", "8"],
        &["--in-flight", "--workers"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--in-flight", "8"],
        &["--in-flight", "http"],
    ),
    (
        &["run", "--transport", "tcp", "--connections", "8"],
        &["--connections", "http"],
    ),
    (
        &["run", "--watch-pid", "4000000000"],
        &["4000000000", "no such process"],
    ),
    (&["run", "--print-plan", "--out", "x"], &["--out", "--print-plan"]),
    (
        &["run", "--print-plan", "--store-timeout", "5s"],
        &["--store-timeout", "--print-plan"],
    ),
    (&["run", "--store-timeout", "0s"], &["--store-timeout 0s"]),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--store-timeout", "5s"],
        &["--store-timeout"],
    ),
    (&["run", "--quiet", "--progress", "lines"], &["--progress", "--quiet"]),
    (
        &["run", "--out", "x", "--html", "x"],
        &["--out and --html", "same file"],
    ),
    (
        &["run", "--store", "rrdcached:unix:/x", "--protocol", "influx"],
        &["--protocol", "--transport tcp"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--store", "memory:"],
        &["--store"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--transport", "tcp"],
        &["--transport", "--to"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--protocol", "tsb"],
        &["--protocol", "--to"],
    ),
    (&["emit", "--to", "tsb+tcp://127.0.0.1:1", "--label", "x"], &["--label"]),
    (
        &["capacity", "--scale", "workers=1,2", "--workers", "2"],
        &["--workers", "--scale"],
    ),
    (
        &["capacity", "--scale", "in-flight=1,2"],
        &["in flight", "vary the workers"],
    ),
    (
        &["run", "--set", "sockets=30", "--transport", "tcp"],
        &["--sockets", "udp"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--watch-pid", "1"],
        &["--watch-pid"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--no-verify"],
        &["--no-verify"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--no-calibrate"],
        &["--no-calibrate"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--gro", "off"],
        &["--gro", "tsb ingest"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--sockets", "2"],
        &["--sockets"],
    ),
    (
        &[
            "emit",
            "--to",
            "tsb+tcp://127.0.0.1:1",
            "--connections",
            "2",
            "--workers",
            "2",
        ],
        &["--workers"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1", "--progress", "live"],
        &["--progress live"],
    ),
    (
        &["emit", "--to", "tsb+tcp://127.0.0.1:1?sockets=2"],
        &["sockets", "udp or unixgram"],
    ),
    (
        &["emit", "--to", "tsb+udp://127.0.0.1:1?idle=2s"],
        &["idle", "tsb ingest"],
    ),
    (
        &["ingest", "--listen", "graphite+tcp://127.0.0.1:0", "--hdr-log", "x"],
        &["--hdr-log", "times nothing"],
    ),
    (
        &["ingest", "--listen", "tsb+udp://127.0.0.1:0?sockets=2"],
        &["sockets", "tsb emit"],
    ),
    (
        &["ingest", "--listen", "rrdcached+unix:/x/s", "--max-series", "5"],
        &["--max-series", "files"],
    ),
    (
        &["ingest", "--listen", "rrdcached+unix:/x/s", "--html", "x"],
        &["--html"],
    ),
    (
        &["record", "--out", "/no/x", "--pid", "1", "--processes", "3"],
        &["--processes", "--pid"],
    ),
    (
        &["record", "--out", "/no/x", "--pid", "4000000000"],
        &["4000000000", "no such process"],
    ),
];

#[test]
fn options_without_effect_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, words) in IDLE {
        let output = program::tsb(arguments).current_dir(folder.path()).output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{arguments:?}: {text}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn a_client_of_a_server_is_driven_in_process_by_default() {
    assert_eq!(plan(&[])["transport"], "tcp");
    assert_eq!(plan(&["--store", "memory:"])["transport"], "tcp");
    let server = "rrdcached:unix:/x/s.sock";
    assert_eq!(plan(&["--store", server])["transport"], "inproc");
    assert_eq!(plan(&["--store", "memory:", "--store", server])["transport"], "inproc");
    assert_eq!(plan(&["--store", server, "--transport", "tcp"])["transport"], "tcp");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.toml");
    fs::write(&file, "transport = \"unix\"\n").unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(plan(&["--plan", file, "--store", server])["transport"], "unix");
}

#[test]
fn a_run_file_takes_numbers_texts_and_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let [file, out, page] = ["run.toml", "r.json", "r.html"].map(|name| folder.path().join(name));
    let text = format!(
        "store = \"memory:\"\nseries = 540\nrate = \"20k\"\nduration = \"200ms\"\nworkload = \"mix\"\n\
         no-calibrate = true\nquiet = true\nout = {:?}\nhtml = {:?}\nformat = \"json\"\n",
        out.to_str().unwrap(),
        page.to_str().unwrap()
    );
    fs::write(&file, text).unwrap();
    let output = output_of(&["run", "--plan", file.to_str().unwrap(), "--seed", "9"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["seed"], &report["offered"]["series"]),
        (&9.into(), &540.into())
    );
    assert_eq!(
        serde_json::from_slice::<Value>(&fs::read(&out).unwrap()).unwrap(),
        report
    );
    assert!(fs::read_to_string(&page).unwrap().contains("</html>"));
    for (text, words) in [
        (
            "store = \"memory:\"\nsereis = 540\n",
            ["run.toml", "line 2", "did you mean series?"],
        ),
        ("\nduration = 10\n", ["run.toml", "line 2", "--duration 10"]),
        (
            "transport = \"inproc\"\nprotocol = \"influx\"\n",
            ["--protocol", "no wire", "hint"],
        ),
    ] {
        fs::write(&file, text).unwrap();
        let output = output_of(&["run", "--plan", file.to_str().unwrap()]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

#[test]
fn no_output_holds_a_password() {
    const WORD: &str = "s3cret-w0rd";
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [url, spec] = ["influx+http", "mongo"].map(|scheme| format!("{scheme}://me:{WORD}@127.0.0.1:1/x"));
    let option = format!("memory:?token={WORD}");
    let (toml, json) = (file("p.toml"), file("p.json"));
    fs::write(&toml, format!("seed = 1\nstore = \"{spec}\"\nrat = 1\n")).unwrap();
    fs::write(&json, format!("{{\"version\": 1, \"stores\": [\"{spec}\"]}}")).unwrap();
    let (out, page, report) = (file("r.json"), file("r.html"), file("x.json"));
    fs::write(&report, "{}").unwrap();
    let cases: [&[&str]; 14] = [
        &["emit", "--to", &url, "--out", &out, "--html", &page],
        &["emit", &url],
        &["ingest", "--listen", &url],
        &["ingest", "--listen", "graphite+tcp://127.0.0.1:0", "--store", &spec],
        &["ingest", "--listen", "rrdcached+unix:/x/s", "--store", &spec],
        &["run", "--store", &spec, "--out", &out, "--html", &page],
        &["run", "--store", &option],
        &["run", &spec],
        &["run", "--expose", &url],
        &["run", "--rate", &url],
        &["run", "--plan", &toml],
        &["run", "--plan", &json],
        &["query", "--store", &spec, "--series", "a"],
        &["verify", &report, "--store", &spec],
    ];
    for arguments in cases {
        let output = output_of(arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert!(
            !printed.is_empty() && !printed.contains(WORD),
            "{arguments:?}: {printed}"
        );
    }
    for name in [&out, &page] {
        let written = fs::read_to_string(name).unwrap_or_default();
        assert!(!written.contains(WORD), "{name}");
    }
}

#[test]
fn an_unknown_command_is_answered_with_the_nearest() {
    for (typed, meant) in [("rnu", "run"), ("verfy", "verify"), ("ingset", "ingest")] {
        let output = output_of(&[typed]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            stderr(&output).contains(&format!("did you mean {meant}?")),
            "{typed}: {}",
            stderr(&output)
        );
    }
}

/// Answers every request with `status`. Returns its address.
fn answering(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut lines = BufReader::new(connection.try_clone().unwrap());
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap_or(0) > 2 {
                line.clear();
            }
            let _ = write!(
                connection,
                "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            let _ = connection.shutdown(std::net::Shutdown::Write);
            let _ = lines.read_to_string(&mut line);
        }
    });
    address
}

#[test]
fn the_hint_fits_what_the_server_did() {
    let url = format!("influx+http://{}", answering("404 Not Found"));
    let output = output_of(&["emit", "--to", &url, "--duration", "1s"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.contains("404") && said.contains("something answers there"),
        "{said}"
    );
    assert!(!said.contains("start the server"), "{said}");
    let silent = output_of(&["emit", "--to", "influx+http://127.0.0.1:1", "--duration", "1s"]);
    assert!(
        stderr(&silent).contains("start the server first"),
        "{}",
        stderr(&silent)
    );
}
