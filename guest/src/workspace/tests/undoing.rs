//! Applies that are taken back.

use super::*;

#[test]
fn applies_are_taken_back_one_after_the_other_and_can_be_repeated() {
    let case = Case::new("chain");
    write(case.project("file"), "zero\n");
    for (id, text) in [("1", "one\n"), ("2", "two\n")] {
        write(case.upper("file"), text);
        assert_eq!(case.apply(id, &["file"], i64::MAX), [ApplyResult::Applied]);
    }
    for (id, before) in [("2", "one\n"), ("1", "zero\n")] {
        let undo = UndoJob { apply_id: id.into(), ..Default::default() };
        let answers = case.job(Job::Undo(undo)).unwrap();
        assert!(matches!(&answers[..], [Answer::Outcome(outcome)] if outcome.result() == ApplyResult::Applied));
        assert_eq!(text(case.project("file")), before);
    }
    assert_eq!(case.apply("3", &["file"], 0), [ApplyResult::Applied], "what undo restored is no change of the host's");
}

#[test]
fn an_undo_that_meets_a_newer_file_keeps_what_was_replaced() {
    let case = Case::new("kept");
    write(case.project("file"), "zero\n");
    write(case.upper("file"), "one\n");
    case.apply_all("1");
    write(case.project("file"), "host\n");
    let undo = || Job::Undo(UndoJob { apply_id: "1".into(), ..Default::default() });
    case.job(undo()).unwrap();
    assert_eq!(text(case.project("file")), "host\n");
    fs::rename(case.project("file"), case.project("aside")).unwrap();
    case.job(undo()).unwrap();
    assert_eq!(text(case.project("file")), "zero\n");
}

#[test]
fn an_undo_that_was_interrupted_is_completed() {
    let case = Case::new("undoing");
    write(case.project("a"), "old");
    write(case.project("b"), "old");
    write(case.upper("a"), "new");
    write(case.upper("b"), "new");
    case.apply_all("1");
    // As a crash leaves it: the mark is there, and one file is back.
    let dir = case.root.join("layer/applies/1");
    fs::write(dir.join("undoing"), "").unwrap();
    fs::rename(dir.join("new-1"), case.project("b")).unwrap();
    case.job(Job::Recover(RecoverJob {})).unwrap();
    assert_eq!((text(case.project("a")), text(case.project("b"))), ("old".into(), "old".into()));
    assert!(!dir.exists());
}
