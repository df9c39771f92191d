"""Runs a program on a terminal of its own. Lines on standard input say what happens there:
`write BASE64`, `resize COLUMNS ROWS`, `hangup`. What the terminal shows goes to standard output; the exit code is the program's."""
import base64, fcntl, os, pty, select, signal, struct, sys, termios


def resize(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def main():
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    resize(fd, 80, 24)
    orders = b""
    sources = [fd, 0]
    while fd in sources:
        ready, _, _ = select.select(sources, [], [])
        if fd in ready:
            try:
                shown = os.read(fd, 65536)
            except OSError:
                shown = b""
            if not shown:
                break
            os.write(1, shown)
        if 0 in ready:
            given = os.read(0, 65536)
            if not given:
                sources.remove(0)
            orders += given
            *lines, orders = orders.split(b"\n")
            for line in lines:
                word, *rest = line.split()
                if word == b"write":
                    os.write(fd, base64.b64decode(rest[0]))
                elif word == b"resize":
                    resize(fd, int(rest[0]), int(rest[1]))
                elif word == b"hangup":
                    os.close(fd)
                    sources.remove(fd)
                    break
    _, status = os.waitpid(pid, 0)
    sys.exit(os.waitstatus_to_exitcode(status) & 255)


signal.signal(signal.SIGPIPE, signal.SIG_DFL)
main()
