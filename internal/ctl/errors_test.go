package ctl

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pncd/api"
	"pncd/api/apitest"
)

func TestWrongCommandLinesExitWith2AndNameTheField(t *testing.T) {
	for _, tt := range []struct {
		args string
		want string
	}{
		{"", "pncctl needs a command"},
		{"bogus", `unknown command "bogus" for pncctl`},
		{"statsu", "did you mean status?"},
		{"log", "pncctl log needs a command"},
		{"log levle debug", "did you mean level?"},
		{"watch", "pncctl watch needs a command"},
		{"watch everything", `unknown command "everything" for pncctl watch`},
		{"status extra", `unexpected argument "extra"`},
		{"status --bogus", "unknown flag: --bogus"},
		{"status -o xml", `--output: "xml" is none of table, json, yaml`},
		{"resolve", "pncctl resolve needs SENDER"},
		{"resolve host", `SENDER: "host" is not an IP address`},
		{"advertise", "pncctl advertise needs PREFIX"},
		{"advertise 192.0.2.1", `PREFIX: "192.0.2.1" is not a prefix`},
		{"advertise 192.0.2.0/24 --mode loud", `--mode: "loud" is none of inline, originate, path`},
		{"advertise 192.0.2.0/24 --proxy x", `--proxy: "x" is not an IP address`},
		{"advertise 192.0.2.0/24 --next-hop x", `--next-hop: "x" is not an IP address`},
		{"flows 192.0.2.1", "flows takes SENDER RECEIVER QP, or nothing; got 1 arguments"},
		{"flows x 192.0.2.1 1", `SENDER: "x" is not an IP address`},
		{"flows 192.0.2.1 x 1", `RECEIVER: "x" is not an IP address`},
		{"flows 192.0.2.1 192.0.2.2 0x1000000", `QP: "0x1000000" is no queue pair number`},
		{"flows 192.0.2.1 192.0.2.2 017", `QP: "017" is no queue pair number`},
		{"flows 192.0.2.1 192.0.2.2 -1", "unknown shorthand flag"},
		{"flows --state loud", `--state: "loud" is none of undecided, learned`},
		{"records --outcome loud", `--outcome: "loud" is no outcome: want one of bad-checksum, context-unknown`},
		{"records --since yesterday", `--since: "yesterday" is neither`},
		{"records --since -5m", `--since: "-5m" is in the future`},
		{"records --follow --limit 3", "--follow and --limit cannot be used together"},
		{"records --count 3", "--count needs --follow"},
		{"records -f --until 10m", "--until: the time has passed"},
		{"watch records --until 2026-03-01T11:59:59Z", "--until: the time has passed"},
		{"capabilities --all --rejected", "--all and --rejected cannot be used together"},
		{"capabilities --prefix x", `--prefix: "x" is not a prefix`},
		{"neighbors a b", `unexpected argument "b"`},
		{"log level", "pncctl log level needs LEVEL"},
		{"status --address pe1", `--address: "pe1" is neither`},
		{"status --socket /x --address y:1", "--socket and --address cannot be used together"},
		{"status --socket /x --tls-ca ca.pem", "is a unix socket"},
		{"status --address 127.0.0.1:1 --tls-cert x", "--tls-cert needs --tls-key beside it"},
		{"status --address 127.0.0.1:1 --tls-ca /nonexistent/ca.pem", "--tls-ca: open /nonexistent/ca.pem"},
		{"status --timeout soon", `--timeout: "soon" is not a duration`},
		{"status --timeout 0s", "--timeout: 0s is no time to wait"},
		{"status --timeout=-5s", "--timeout: -5s is no time to wait"},
		{"flows --limit many", `--limit: "many" is not a number from 0 to 4294967295`},
		{"records -f --count=-1", `--count: "-1" is not a number`},
		{"flows --limit 4294967296", `--limit: "4294967296" is not a number`},
		{"counters --nonzero=maybe", `--nonzero: "maybe" is not true or false`},
		{"completion", "pncctl completion needs a command"},
		{"completion nosh", `unknown command "nosh" for pncctl completion`},
		{"support-bundle -o json", "--output: it names the archive"},
		{"support-bundle --output=yaml", "--output: it names the archive"},
		{"support-bundle -otable", "--output: it names the archive"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			status, out, errs := pncctl(t, nil, strings.Fields(tt.args)...)
			if status != exitUsage || out != "" {
				t.Errorf("exit status %d, output %q, want 2 and none", status, out)
			}
			last := errs[strings.LastIndex(strings.TrimSuffix(errs, "\n"), "\n")+1:]
			if !strings.HasPrefix(last, "pncctl: ") || !strings.Contains(last, tt.want) {
				t.Errorf("errors = %q, want one line with %q", errs, tt.want)
			}
			for _, internal := range []string{"strconv.", "group [", "time: "} {
				if strings.Contains(last, internal) {
					t.Errorf("errors = %q: %q means nothing to a user", errs, internal)
				}
			}
		})
	}
	_, env := sample(t)
	env = map[string]string{envAddress: strings.TrimPrefix(env[envAddress], "unix:///")}
	if status, _, errs := pncctl(t, env, "status"); status != exitUsage || !strings.Contains(errs, "PNCCTL_ADDRESS: ") {
		t.Errorf("bad environment: exit status %d, errors %q, want the variable named", status, errs)
	}
}

func TestServersRefusalOfAValueExitsWith2(t *testing.T) {
	_, env := sample(t)
	status, _, errs := pncctl(t, env, "capabilities", "--prefix", "192.0.2.1/24")
	if status != exitUsage || errs != "pncctl: prefix: \"192.0.2.1/24\" has host bits set; did you mean 192.0.2.0/24?\n" {
		t.Errorf("exit status %d, errors %q", status, errs)
	}
}

func TestAContextThatIsNotConfiguredIsNamed(t *testing.T) {
	_, env := sample(t)
	for args, want := range map[string]string{
		"flows --context nope":            `context: "nope" is not configured`,
		"records --context nope":          `filter.context: "nope" is not configured`,
		"records --follow --context nope": `filter.context: "nope" is not configured`,
	} {
		status, out, errs := pncctl(t, env, strings.Fields(args)...)
		if status != exitUsage || out != "" || errs != "pncctl: "+want+"\n" {
			t.Errorf("%s: exit status %d, output %q, errors %q", args, status, out, errs)
		}
	}
	for _, args := range []string{"flows --context blue", "records --context blue"} { // configured, without any
		if status, _, errs := pncctl(t, env, strings.Fields(args)...); status != 0 {
			t.Errorf("%s: exit status %d, errors %q", args, status, errs)
		}
	}
}

func TestAPartWithoutCountersIsExplained(t *testing.T) {
	_, env := sample(t)
	status, out, errs := pncctl(t, env, "counters", "--part", "bogus")
	if status != exitFailed || out != "" || !strings.HasPrefix(errs, `pncctl: this node counts nothing for a part "bogus": its configuration has no such part`) {
		t.Errorf("exit status %d, output %q, errors %q", status, out, errs)
	}
}

func TestUnreachableDaemonSaysWhyAndWhatToDo(t *testing.T) {
	dir := apitest.SocketDir(t)
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().String()
	free.Close()
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"--socket " + dir + "/none.sock status", []string{"there is no such socket: is pncd running?", dir + "/none.sock"}},
		{"--socket " + dead + " status", []string{"nobody listens on the socket: is pncd running?"}},
		{"--address " + port + " status", []string{"connection refused", "api.listen"}},
		{"--socket unix://" + dir + "/none.sock status", []string{"pncd at unix://" + dir + "/none.sock: there"}},
		{"--socket unix:" + dir + "/none.sock status", []string{"pncd at unix://" + dir + "/none.sock: there"}},
		{"--socket " + dir + "/none.sock watch flows", []string{"is pncd running?"}},
		{"--socket " + dir + "/none.sock support-bundle", []string{"is pncd running?"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			status, out, errs := pncctl(t, nil, strings.Fields(tt.args)...)
			if status != exitFailed || out != "" || strings.Count(errs, "\n") != 1 {
				t.Errorf("exit status %d, output %q, errors %q, want 1 and one line", status, out, errs)
			}
			for _, w := range tt.want {
				if !strings.Contains(errs, w) {
					t.Errorf("errors = %q, want %q in it", errs, w)
				}
			}
		})
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

// Root may open any socket, so what the kernel would say is put in the client's place.
func TestPermissionDeniedNamesTheGroup(t *testing.T) {
	b := apitest.New(t)
	gid := os.Getgid()
	if os.Geteuid() == 0 {
		gid = 54321
	}
	path := filepath.Join(apitest.SocketDir(t), "pncd.sock")
	l, err := api.ListenConfig{Address: path, Group: strconv.Itoa(gid)}.Listen(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	apitest.Serve(t, b.API(), api.Options{}, l)
	denied := error(&net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)})
	a := &app{client: &client{network: "unix", address: path}, started: true}
	a.client.dialError.Store(&denied)
	line, exit := a.report(status.Error(codes.Unavailable, "connection error"))
	if exit != exitFailed || !strings.Contains(line, "permission denied: you must be in group") {
		t.Errorf("report = %q, %d, want the group", line, exit)
	}
	if os.Geteuid() == 0 && (!strings.Contains(line, "group 54321") || !strings.Contains(line, "api.group")) {
		t.Errorf("report = %q, want group 54321 and what chooses it", line)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 0, 0); err != nil {
			t.Fatal(err)
		}
		line, _ := a.report(status.Error(codes.Unavailable, "connection error"))
		if strings.Contains(line, "usermod") || !strings.Contains(line, "api.group") {
			t.Errorf("report = %q, want api.group named and nobody sent into root's group", line)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if line, _ := a.report(status.Error(codes.Unavailable, "connection error")); !strings.Contains(line, "only its owner") {
		t.Errorf("report = %q, want that only the owner may", line)
	}
}

func TestInternalErrorsPointToTheLog(t *testing.T) {
	b, env := sample(t)
	b.Node.Fail(errors.New("disk\non fire"))
	status, _, errs := pncctl(t, env, "reload")
	if status != exitFailed || errs != "pncctl: disk on fire (the log of pncd says more)\n" {
		t.Errorf("exit status %d, errors %q", status, errs)
	}
}

func TestCallsEndAtTheTimeout(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(apitest.SocketDir(t), "silent.sock")) // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	status, _, errs := pncctl(t, nil, "--socket", l.Addr().String(), "--timeout", "50ms", "status")
	if status != exitFailed || !strings.Contains(errs, "within 50ms") {
		t.Errorf("exit status %d, errors %q, want the timeout named", status, errs)
	}
}
