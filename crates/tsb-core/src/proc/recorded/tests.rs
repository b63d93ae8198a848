//! Tests of the parsers on what kernels print, and on what they do not.

use proptest::prelude::*;

use super::*;

type Found = Vec<(String, String)>;

fn fields(parse: impl Fn(&[u8], &mut FieldVisitor<'_>), text: &str) -> Found {
    let mut found = Found::new();
    parse(text.as_bytes(), &mut |name, labels, digits| {
        let labels: Vec<String> = labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
        let key = if labels.is_empty() {
            name.to_owned()
        } else {
            format!("{name}{{{}}}", labels.join(","))
        };
        found.push((key, String::from_utf8_lossy(digits).into_owned()));
    });
    found
}

fn has(found: &Found, key: &str, digits: &str) {
    assert!(
        found.contains(&(key.to_owned(), digits.to_owned())),
        "{key} {digits} is not in {found:?}"
    );
}

#[test]
fn stat_gives_cpu_modes_interrupts_and_switches() {
    let found = fields(
        stat,
        "cpu  9 0 1 5 2 0 7 8 0 0 99\ncpu0 1 2 3\nintr 77 1 2 3\nctxt 5\nbtime 1\nprocesses 6\n\
         procs_running 3\nprocs_blocked 1\nsoftirq 10 1 2\n",
    );
    has(&found, "cpu_user_ticks{cpu=all}", "9");
    has(&found, "cpu_steal_ticks{cpu=all}", "8");
    has(&found, "cpu_system_ticks{cpu=0}", "3");
    has(&found, "interrupts", "77");
    has(&found, "context_switches", "5");
    has(&found, "forks", "6");
    has(&found, "softirqs{kind=timer}", "2");
    assert_eq!(found.len(), 10 + 3 + 1 + 4 + 3, "an unknown column or line is ignored");
}

#[test]
fn memory_files_give_a_name_a_line() {
    let found = fields(
        meminfo,
        "MemFree:  12 kB\nActive(anon): 3 kB\nHugePages_Total: 0\nBroken\n",
    );
    has(&found, "meminfo_MemFree_kib", "12");
    has(&found, "meminfo_Active_anon_kib", "3");
    has(&found, "meminfo_HugePages_Total", "0");
    assert_eq!(found.len(), 3);
    let found = fields(vmstat, "nr_free_pages 17\n\nlonely\n");
    assert_eq!(found, [("vmstat_nr_free_pages".to_owned(), "17".to_owned())]);
}

#[test]
fn devices_are_labels() {
    let found = fields(diskstats, " 7 0 loop0 0 0 0\n 254 0 vda 5 6 7 8\nshort\n");
    has(&found, "disk_reads{device=vda}", "5");
    has(&found, "disk_read_ms{device=vda}", "8");
    assert_eq!(found.len(), 4, "a device that was never used is left out");
    let found = fields(net_dev, "Inter-| Receive\n face |bytes\n  lo: 1 2\neth0:3 4\n");
    has(&found, "net_receive_packets{interface=lo}", "2");
    has(&found, "net_receive_bytes{interface=eth0}", "3");
    assert_eq!(found.len(), 4);
}

#[test]
fn load_and_pressure_are_decimals() {
    has(&fields(loadavg, "2.21 1.15 0.77 3/117 14166\n"), "load15", "0.77");
    let found = fields(
        |text, visit| pressure("io", text, visit),
        "some avg10=0.54 avg60=0.22 avg300=0.41 total=10295642\nfull nonsense total=4\n",
    );
    has(&found, "pressure_avg10_percent{resource=io,share=some}", "0.54");
    has(&found, "pressure_total_us{resource=io,share=full}", "4");
    assert_eq!(found.len(), 5);
}

const STAT: &str = "42 (a) b (c d) S 1 42 42 0 -1 4194304 100 0 5 0 17 4 2 1 20 0 3 0 151622 2998272 415 \
                    18446744073709551615 1 1 0\n";

#[test]
fn the_name_of_a_process_may_hold_anything() {
    let stat = pid_stat(STAT.as_bytes()).unwrap();
    assert_eq!(stat.comm, "a__b__c_d");
    assert_eq!((stat.started_ticks, stat.cpu_ticks), (151622, 21));
    let digits: Vec<&[u8]> = stat.digits.iter().map(|digits| &**digits).collect();
    assert_eq!(digits, [&b"100"[..], b"5", b"17", b"4", b"3", b"2998272", b"415"]);
    let worker = STAT.replace("a) b (c d", "kworker/u8:2+flush-254:0");
    assert_eq!(pid_stat(worker.as_bytes()).unwrap().comm, "kworker_u8_2");
    for length in 0..STAT.len() - 60 {
        let _ = pid_stat(&STAT.as_bytes()[..length]);
    }
    for bad in ["", "42", "42 (", ") 42 (", "1 (x)", "1 (x) S 1 2 3"] {
        assert_eq!(pid_stat(bad.as_bytes()), None, "{bad}");
    }
}

#[test]
fn process_files_give_numbers_only() {
    let mut found = Vec::new();
    pid_io(b"rchar: 5\nother: 1\nwrite_bytes: 7\nsyscr:\n", &mut |name, digits| {
        found.push((name.to_owned(), digits.to_vec()));
    });
    let expected = [("process_read_chars", b"5"), ("process_write_bytes", b"7")];
    assert_eq!(found, expected.map(|(name, digits)| (name.to_owned(), digits.to_vec())));
    found.clear();
    pid_status(b"Name: secret\nUid: 0 0 0 0\nVmSwap: 8 kB\n", &mut |name, digits| {
        found.push((name.to_owned(), digits.to_vec()));
    });
    assert_eq!(found, [("process_swap_kib".to_owned(), b"8".to_vec())]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_bytes_are_parsed_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut count = 0;
        for parse in [stat, meminfo, vmstat, diskstats, net_dev, loadavg] {
            parse(&bytes, &mut |_, _, _| count += 1);
        }
        pressure("cpu", &bytes, &mut |_, _, _| count += 1);
        pid_io(&bytes, &mut |_, _| count += 1);
        pid_status(&bytes, &mut |_, _| count += 1);
        let _ = pid_stat(&bytes);
        prop_assert!(count <= 9 * bytes.len());
    }
}
