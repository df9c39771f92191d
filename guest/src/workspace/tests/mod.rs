//! The job is given a real overlay's upper layer where it matters (whiteouts, opaque directories are made by hand:
//! they are what the kernel leaves).

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

mod copies;
mod undoing;

use super::{run, scan};
use crate::proto::keeper::{
    ApplyItem, ApplyJob, ApplyResult, CopyJob, LayerChange, LayerChangeKind as Kind, RecoverJob, ScanJob, UndoJob,
    WorkspaceJob, workspace_job::Job, workspace_message::Message as Answer,
};

struct Case {
    root: PathBuf,
    is_copy: bool,
}

struct Told(Vec<Answer>);

impl super::Answers for Told {
    fn tell(&mut self, answer: Answer) -> std::io::Result<()> {
        self.0.push(answer);
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Case {
    fn new(name: &str) -> Case {
        let root = std::env::temp_dir().join(format!("caisson-workspace-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("project")).unwrap();
        fs::create_dir_all(root.join("layer/upper")).unwrap();
        Case { root, is_copy: false }
    }

    fn project(&self, path: &str) -> PathBuf {
        self.root.join("project").join(path)
    }

    fn upper(&self, path: &str) -> PathBuf {
        self.root.join("layer/upper").join(path)
    }

    fn job(&self, job: Job) -> Result<Vec<Answer>, String> {
        let job = WorkspaceJob {
            lower: self.root.join("project").to_str().unwrap().into(),
            layer: self.root.join("layer").to_str().unwrap().into(),
            job: Some(job),
            is_copy: self.is_copy,
        };
        let mut answers = Told(Vec::new());
        run(&job, &mut answers).map(|_| answers.0).map_err(|error| format!("{}: {}", error.code, error.message))
    }

    fn scan(&self) -> Vec<LayerChange> {
        let job = ScanJob { content_bytes: 1 << 20, renames: true, attached_at_ns: i64::MAX, ..ScanJob::default() };
        let answers = self.job(Job::Scan(job)).unwrap();
        answers.into_iter().map(|answer| if let Answer::Change(change) = answer { change } else { panic!() }).collect()
    }

    fn apply(&self, id: &str, paths: &[&str], attached_at_ns: i64) -> Vec<ApplyResult> {
        let items = paths.iter().map(|path| ApplyItem { path: path.as_bytes().into(), ..Default::default() }).collect();
        let job = ApplyJob { items, attached_at_ns, apply_id: id.into(), ..Default::default() };
        let answers = self.job(Job::Apply(job)).unwrap();
        answers
            .into_iter()
            .map(|answer| if let Answer::Outcome(outcome) = answer { outcome.result() } else { panic!() })
            .collect()
    }

    fn apply_all(&self, id: &str) {
        let paths: Vec<String> = scan::changes(&self.place(), scan::Since::new(i64::MAX, None))
            .unwrap()
            .iter()
            .map(|c| String::from_utf8(c.path.clone()).unwrap())
            .collect();
        let results = self.apply(id, &paths.iter().map(String::as_str).collect::<Vec<_>>(), i64::MAX);
        assert!(results.iter().all(|result| *result == ApplyResult::Applied), "{results:?}");
    }

    fn place(&self) -> super::layer::Place {
        super::layer::Place::open(&WorkspaceJob {
            lower: self.root.join("project").to_str().unwrap().into(),
            layer: self.root.join("layer").to_str().unwrap().into(),
            job: None,
            is_copy: self.is_copy,
        })
        .unwrap()
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn whiteout(path: PathBuf) -> bool {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::CharacterDevice, rustix::fs::Mode::empty(), 0)
        .is_ok()
}

fn kinds(changes: &[LayerChange]) -> Vec<(String, Kind)> {
    changes.iter().map(|change| (String::from_utf8_lossy(&change.path).into_owned(), change.kind())).collect()
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_scan_tells_what_was_added_changed_deleted_and_chmodded_and_nothing_else() {
    let case = Case::new("scan");
    for name in ["same", "changed", "deleted", "mode", "dir/inner"] {
        write(case.project(name), "old content\n");
    }
    write(case.upper("same"), "old content\n");
    write(case.upper("changed"), "new content\n");
    write(case.upper("added"), "x");
    write(case.upper("mode"), "old content\n");
    fs::set_permissions(case.upper("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", case.upper("link")).unwrap();
    assert!(whiteout(case.upper("deleted")), "run the tests as root");
    assert!(whiteout(case.upper("dir")));
    let found = kinds(&case.scan());
    let expected = [
        ("added", Kind::Added),
        ("changed", Kind::Modified),
        ("deleted", Kind::Deleted),
        ("dir", Kind::Deleted),
        ("dir/inner", Kind::Deleted),
        ("link", Kind::Added),
        ("mode", Kind::Mode),
    ];
    assert_eq!(found, expected.map(|(path, kind)| (path.to_string(), kind)));
}

#[test]
fn a_file_that_moved_is_a_rename() {
    let case = Case::new("rename");
    write(case.project("a"), "some content\n");
    write(case.upper("sub/b"), "some content\n");
    whiteout(case.upper("a"));
    let found = case.scan();
    assert_eq!(kinds(&found), [("sub".to_string(), Kind::Added), ("sub/b".to_string(), Kind::Renamed)]);
    assert_eq!(found[1].from, b"a");
}

#[test]
fn an_apply_makes_the_project_what_the_sandbox_saw_and_undo_takes_it_back() {
    let case = Case::new("apply");
    write(case.project("changed"), "old\n");
    write(case.project("gone/inner"), "old\n");
    write(case.upper("changed"), "new\n");
    write(case.upper("deep/er/file"), "added\n");
    fs::set_permissions(case.upper("deep/er/file"), fs::Permissions::from_mode(0o4755)).unwrap();
    symlink("changed", case.upper("link")).unwrap();
    whiteout(case.upper("gone"));
    case.apply_all("1");
    assert_eq!(text(case.project("changed")), "new\n");
    assert_eq!(text(case.project("deep/er/file")), "added\n");
    assert_eq!(fs::metadata(case.project("deep/er/file")).unwrap().mode() & 0o7777, 0o755, "set-uid never arrives");
    assert_eq!(fs::read_link(case.project("link")).unwrap(), Path::new("changed"));
    assert!(!case.project("gone").exists());
    assert!(case.scan().is_empty(), "nothing is left to apply: {:?}", kinds(&case.scan()));
    let leftovers: Vec<_> = fs::read_dir(case.project("")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(leftovers.len(), 3, "{leftovers:?}");

    case.job(Job::Undo(UndoJob { apply_id: "1".into(), ..Default::default() })).unwrap();
    assert_eq!(text(case.project("changed")), "old\n");
    assert_eq!(text(case.project("gone/inner")), "old\n");
    assert!(!case.project("deep").exists() && !case.project("link").exists());
}

#[test]
fn a_file_that_the_host_changed_meanwhile_is_a_conflict_and_stays() {
    let case = Case::new("conflict");
    write(case.project("file"), "host\n");
    write(case.upper("file"), "sandbox\n");
    assert_eq!(case.apply("1", &["file"], 0), [ApplyResult::Conflict]);
    assert_eq!(text(case.project("file")), "host\n");
}

#[test]
fn a_file_that_we_applied_ourselves_is_no_conflict_the_next_time() {
    let case = Case::new("again");
    write(case.upper("file"), "one\n");
    assert_eq!(case.apply("1", &["file"], 0), [ApplyResult::Applied]);
    write(case.upper("file"), "two\n");
    assert_eq!(case.apply("2", &["file"], 0), [ApplyResult::Applied]);
    assert_eq!(text(case.project("file")), "two\n");
    write(case.project("file"), "host\n");
    write(case.upper("file"), "three\n");
    assert_eq!(case.apply("3", &["file"], 0), [ApplyResult::Conflict]);
}

#[test]
fn nothing_is_written_through_a_link_in_the_project() {
    let case = Case::new("link");
    let outside = case.root.join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, case.project("dir")).unwrap();
    write(case.upper("dir/file"), "x");
    let results = case.apply("1", &["dir/file", "../escape", "/etc/x", "a//b"], i64::MAX);
    assert!(results.iter().all(|result| matches!(result, ApplyResult::Refused)), "{results:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_directory_that_became_a_file_and_the_reverse() {
    let case = Case::new("types");
    write(case.project("a/inner"), "x");
    write(case.project("b"), "x");
    write(case.upper("a"), "now a file");
    write(case.upper("b/inner"), "now in a directory");
    case.apply_all("1");
    assert_eq!(text(case.project("a")), "now a file");
    assert_eq!(text(case.project("b/inner")), "now in a directory");
}

#[test]
fn a_directory_in_which_the_host_changed_something_gives_way_to_a_file_only_by_force() {
    let case = Case::new("displaced");
    write(case.project("d/inner"), "the owner's\n");
    write(case.upper("d"), "a file now\n");
    let apply = |id: &str, force: bool| {
        let item = |path: &str| ApplyItem { path: path.into(), force, ..Default::default() };
        let items = vec![item("d"), item("d/inner")];
        let job = ApplyJob { items, attached_at_ns: 0, apply_id: id.into(), ..Default::default() };
        let answers = case.job(Job::Apply(job)).unwrap();
        answers.into_iter().all(|answer| matches!(answer, Answer::Outcome(it) if it.result() == ApplyResult::Applied))
    };
    assert!(!apply("1", false));
    assert_eq!(text(case.project("d/inner")), "the owner's\n");
    assert!(apply("2", true));
    assert_eq!(text(case.project("d")), "a file now\n");
}

#[test]
fn what_a_crash_interrupted_is_completed() {
    let case = Case::new("crash");
    for i in 0..20 {
        write(case.project(&format!("f{i}")), "old");
        write(case.upper(&format!("f{i}")), "new");
    }
    // Everything is staged and journalled, and some of it is in place.
    let place = case.place();
    let items: Vec<_> = (0..20).map(|i| ApplyItem { path: format!("f{i}").into(), ..Default::default() }).collect();
    let job = ApplyJob { items, attached_at_ns: i64::MAX, apply_id: "1".into(), ..Default::default() };
    super::apply::interrupted(&place, &job, 7).unwrap();
    assert_eq!(text(case.project("f19")), "old");
    case.job(Job::Recover(RecoverJob {})).unwrap();
    for i in 0..20 {
        assert_eq!(text(case.project(&format!("f{i}"))), "new");
    }
    case.job(Job::Undo(UndoJob { apply_id: "1".into(), ..Default::default() })).unwrap();
    for i in 0..20 {
        assert_eq!(text(case.project(&format!("f{i}"))), "old");
    }
}

#[test]
fn what_is_new_below_an_opaque_directory_hides_all_of_the_project() {
    let case = Case::new("opaque");
    write(case.project("d/e/hidden"), "x");
    write(case.project("d/other"), "x");
    write(case.upper("d/e/new"), "other");
    let opaque = rustix::fs::setxattr(case.upper("d"), "user.overlay.opaque", b"y", rustix::fs::XattrFlags::empty());
    opaque.expect("a file system with extended attributes");
    let expected = [("d/e/hidden", Kind::Deleted), ("d/e/new", Kind::Added), ("d/other", Kind::Deleted)];
    assert_eq!(kinds(&case.scan()), expected.map(|(path, kind)| (path.to_string(), kind)));
}

#[test]
fn what_was_applied_is_not_a_change_again_whatever_the_host_does_with_it() {
    let case = Case::new("delivered");
    write(case.project("file"), "old\n");
    write(case.project("gone"), "old\n");
    write(case.upper("file"), "new\n");
    whiteout(case.upper("gone"));
    case.apply_all("1");
    write(case.project("file"), "host\n");
    write(case.project("gone"), "host\n");
    assert!(case.scan().is_empty(), "{:?}", kinds(&case.scan()));
    write(case.upper("file"), "newer\n");
    assert_eq!(kinds(&case.scan()), [("file".to_string(), Kind::Modified)]);
}

#[test]
fn what_was_applied_and_then_deleted_in_a_new_directory_needs_no_mark_of_the_overlay() {
    let case = Case::new("unmarked");
    write(case.upper("d/e/file"), "new\n");
    write(case.upper("d/other"), "new\n");
    case.apply_all("1");
    write(case.project("d/host"), "the owner's\n");
    std::fs::remove_dir_all(case.upper("d/e")).unwrap();
    let expected = [("d/e", Kind::Deleted), ("d/e/file", Kind::Deleted)];
    assert_eq!(kinds(&case.scan()), expected.map(|(path, kind)| (path.to_string(), kind)));
    case.apply_all("2");
    assert!(!case.project("d/e").exists());
    assert_eq!([text(case.project("d/host")), text(case.project("d/other"))], ["the owner's\n", "new\n"]);
    assert!(case.scan().is_empty(), "{:?}", kinds(&case.scan()));
}
