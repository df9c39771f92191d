//! Processes that wait to become a command: nothing that happens to them meanwhile is the command's.

use super::{
    Sandbox,
    host::{Host, command},
};

/// The commands run so far leave one behind; PID 1 makes it when nobody waits for anything else.
fn until_one_waits(host: &mut Host) {
    let count = "grep -l '^caisson-monitor$' /proc/[0-9]*/comm | wc -l";
    for _ in 0..100 {
        // The monitor of this command, a spare one and its process.
        if host.run(count).1.stdout == b"3\n" {
            return;
        }
    }
    panic!("no process waits for a command");
}

#[test]
fn signals_to_everybody_do_not_reach_the_next_command() {
    let (_sandbox, mut host) = Sandbox::sealed();
    until_one_waits(&mut host);
    for signal in ["HUP", "INT", "QUIT", "TERM", "USR1", "ALRM", "PIPE", "TSTP", "TTIN", "ABRT", "40"] {
        let (exited, state) = host.run(&format!("kill -{signal} -1; echo sent; exit 7"));
        assert_eq!((exited.code, state.stdout), (7, b"sent\n".to_vec()), "{signal}");
    }
}

#[test]
fn a_command_begins_with_the_default_actions_and_a_session_of_its_own() {
    let (_sandbox, mut host) = Sandbox::sealed();
    for _ in 0..3 {
        let stream = host.start(command(&["cat", "/proc/self/status", "/proc/self/stat"])).unwrap();
        let text = String::from_utf8(host.finish(stream).1.stdout).unwrap();
        for line in ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "SigCgt:\t0000000000000000"] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let fields: Vec<&str> = text.lines().last().unwrap().split(' ').collect();
        // Its pid, its group and its session.
        assert_eq!((fields[0], fields[0]), (fields[4], fields[5]));
        until_one_waits(&mut host);
    }
}

#[test]
fn who_kills_what_waits_does_not_stop_the_next_command() {
    let (_sandbox, mut host) = Sandbox::sealed();
    for choice in ["!=", "="] {
        until_one_waits(&mut host);
        // All but its own monitor; until PID 1 has noticed.
        let kill = format!(
            "for p in /proc/[0-9]*; do
                [ \"$(cat $p/comm)\" = caisson-monitor ] && [ \"$(cut -d' ' -f4 $p/stat)\" {choice} 1 ] || continue
                [ ${{p#/proc/}} != $PPID ] && kill -9 ${{p#/proc/}} || continue
                while [ -d $p ]; do sleep 0.01; done
            done 2>/dev/null"
        );
        assert_eq!(host.run(&format!("{kill}; exit 7")).0.code, 7);
        for code in 1..5 {
            assert_eq!(host.run(&format!("exit {code}")).0.code, code);
        }
    }
}
