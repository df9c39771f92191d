//! Copies of a project, and what was changed in them.

use super::*;

#[test]
fn a_copy_has_everything_but_sockets_and_its_scan_tells_what_it_lacks() {
    let mut case = Case::new("copy");
    case.is_copy = true;
    write(case.project("dir/file"), "x");
    write(case.project("gone"), "x");
    symlink("dir", case.project("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(case.project("socket")).unwrap();
    case.job(Job::Copy(CopyJob {})).unwrap();
    assert_eq!(text(case.upper("dir/file")), "x");
    assert_eq!(fs::read_link(case.upper("link")).unwrap(), Path::new("dir"));
    assert!(case.scan().is_empty(), "{:?}", kinds(&case.scan()));
    fs::remove_file(case.upper("gone")).unwrap();
    write(case.upper("dir/file"), "y");
    let expected = [("dir/file", Kind::Modified), ("gone", Kind::Deleted)];
    assert_eq!(kinds(&case.scan()), expected.map(|(path, kind)| (path.to_string(), kind)));
}

#[test]
fn in_a_copy_what_was_moved_whole_is_the_sandbox_s_and_what_nobody_touched_is_the_host_s() {
    let mut case = Case::new("moved");
    case.is_copy = true;
    for (path, content) in [("a/f", "1"), ("b/f", "2"), ("kept/f", "3"), ("gone/f", "4"), ("c/same", "5")] {
        write(case.project(path), content);
    }
    // Alike but for their content.
    let time = fs::metadata(case.project("b/f")).unwrap().modified().unwrap();
    fs::File::open(case.project("a/f")).unwrap().set_modified(time).unwrap();
    case.job(Job::Copy(CopyJob {})).unwrap();
    // The host goes on.
    write(case.project("a/f"), "host");
    write(case.project("kept/f"), "host");
    fs::remove_dir_all(case.project("gone")).unwrap();
    assert!(case.scan().is_empty(), "{:?}", kinds(&case.scan()));
    fs::rename(case.upper("a"), case.upper("x")).unwrap();
    fs::rename(case.upper("b"), case.upper("a")).unwrap();
    fs::rename(case.upper("x"), case.upper("b")).unwrap();
    let job = ScanJob { attached_at_ns: 0, ..ScanJob::default() };
    let found = case.job(Job::Scan(job)).unwrap();
    let found: Vec<_> = found
        .into_iter()
        .map(|answer| if let Answer::Change(change) = answer { change } else { panic!() })
        .map(|change| (String::from_utf8(change.path.clone()).unwrap(), change.kind(), change.conflict))
        .collect();
    let expected = [("a/f", Kind::Modified, true), ("b/f", Kind::Modified, true)];
    assert_eq!(found, expected.map(|(path, kind, conflict)| (path.to_string(), kind, conflict)));
}

#[test]
fn in_a_copy_what_was_moved_away_applied_and_moved_back_comes_back() {
    let mut case = Case::new("back");
    case.is_copy = true;
    write(case.project("d/f"), "1");
    case.job(Job::Copy(CopyJob {})).unwrap();
    fs::rename(case.upper("d"), case.upper("away")).unwrap();
    case.apply_all("1");
    assert!(!case.project("d").exists());
    fs::rename(case.upper("away"), case.upper("d")).unwrap();
    case.apply_all("2");
    assert_eq!(text(case.project("d/f")), "1");
    assert!(!case.project("away").exists());
}

#[test]
fn a_copy_of_a_sparse_file_stays_sparse() {
    let case = Case::new("sparse");
    let file = fs::File::create(case.upper("sparse")).unwrap();
    file.set_len(1 << 30).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"end", (1 << 30) - 3).unwrap();
    case.apply_all("1");
    let stat = fs::metadata(case.project("sparse")).unwrap();
    assert_eq!(stat.len(), 1 << 30);
    assert!(stat.blocks() < 4096, "{} blocks", stat.blocks());
}
