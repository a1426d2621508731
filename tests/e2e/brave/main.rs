//! Brave's filter engine (crate adblock) behind the same door as ours, for compare_filters.py:
//!
//!     brave-filter [--time] LIST... < requests        lines "URL<TAB>PAGE-URL<TAB>TYPE"
//!
//! Prints "block RULE", "allow RULE" or "none" for each line. With --time it prints nothing of that
//! but, on descriptor 2, how long the lists took to load and the nanoseconds for each request, its
//! parsing included, in time of this process; the engine then keeps no texts of rules, as in a
//! browser.

use adblock::lists::{FilterSet, ParseOptions};
use adblock::request::Request;
use adblock::Engine;
use std::io::{BufRead, Write};

fn engine_of(paths: &[String], with_texts: bool) -> Engine {
    let mut set = FilterSet::new(with_texts);
    for path in paths {
        let bytes = std::fs::read(path).expect("a list");
        set.add_filter_list(String::from_utf8_lossy(&bytes).into_owned(), ParseOptions::default());
    }
    Engine::new_with_filter_set(set)
}

/// Nanoseconds on a core so far.
fn now() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|field| field.parse().ok()).expect("a number")
}

fn answer(engine: &Engine, line: &str) -> Option<adblock::blocker::BlockerResult> {
    let mut parts = line.split('\t');
    let (url, page, kind) = (parts.next()?, parts.next()?, parts.next()?);
    let request = Request::new(url, page, kind, "GET").ok()?;
    Some(engine.check_network_request(&request))
}

fn main() {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let timed = paths.first().is_some_and(|first| first == "--time");
    if timed {
        paths.remove(0);
    }
    let begun = now();
    let engine = engine_of(&paths, !timed);
    let loaded = now() - begun;
    let lines: Vec<String> = std::io::stdin().lock().split(b'\n')
        .map(|line| String::from_utf8_lossy(&line.expect("a line")).into_owned())
        .collect();
    if timed {
        let begun = now();
        let blocked = lines.iter()
            .filter(|line| answer(&engine, line).is_some_and(|r| r.should_block()))
            .count();
        let each = (now() - begun) / lines.len().max(1) as f64;
        eprintln!("lists loaded in {:.1} ms; {} blocked, {:.0} ns each",
                  loaded / 1e6, blocked, each);
        return;
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in &lines {
        let text = match answer(&engine, line) {
            None => "none".to_string(),
            Some(result) => {
                let rule = |info: Option<_>| info.map_or(String::new(), |i| format!("{i}"));
                if result.filter.is_some() && result.exception.is_none() {
                    format!("block {}", rule(result.filter))
                } else if result.exception.is_some() {
                    format!("allow {}", rule(result.exception))
                } else {
                    "none".to_string()
                }
            }
        };
        writeln!(out, "{text}").expect("room");
    }
}
