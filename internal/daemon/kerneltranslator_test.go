package daemon

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/tap/kernel"
	"pncd/dataplane/tap/taptest"
	"pncd/dataplane/translate"
	"pncd/internal/config"
	"pncd/internal/testwait"
)

// inKernel is a daemon that does not run, and in a namespace, opened by hand, its translator in the kernel.
type inKernel struct {
	*Daemon
	*kernelTranslator
	t    *testing.T
	ns   *taptest.NS
	mac  net.HardwareAddr
	wire *taptest.Injector
	open []runner
}

const kernelTemplate = "  translate: kernel\n  translate_interfaces: [va, wa]\n  taps: [lo]\n"

func newInKernel(t *testing.T) *inKernel {
	t.Helper()
	a, b := taptest.Pair(t)
	k := &inKernel{t: t, ns: a, wire: taptest.NeedInjector(t, b, "vb")}
	mac, err := a.MAC("va")
	if err != nil {
		t.Fatal(err)
	}
	k.mac = mac
	log := logrus.New()
	log.SetOutput(io.Discard)
	if k.Daemon, err = New(k.load(), "", log); err != nil {
		t.Fatal(err)
	}
	k.kernelTranslator = k.parts.Load().kernel
	t.Cleanup(func() {
		for _, r := range k.open {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	k.unit("translate")
	return k
}

// load reads the configuration with an edit.
func (k *inKernel) load(edit ...string) *config.Config {
	k.t.Helper()
	dir := k.t.TempDir()
	path := filepath.Join(dir, "pncd.yaml")
	r := &running{t: k.t, port: 2021}
	r.write(path, strings.NewReplacer(edit...).Replace(strings.Replace(template, "  taps: [lo]\n", kernelTemplate, 1)))
	cfg, err := config.Load(path)
	if err != nil {
		k.t.Fatal(err)
	}
	return cfg
}

// unit opens a part as the configuration has it that the daemon began with.
func (k *inKernel) unit(name string) runner {
	k.t.Helper()
	for _, s := range k.specs(k.config.Load(), k.parts.Load()) {
		if s.name != name {
			continue
		}
		var r runner
		err := k.ns.Do(func() (err error) { r, err = s.open(); return err })
		if errors.Is(err, kernel.ErrPermission) || errors.Is(err, kernel.ErrNotSupported) {
			k.t.Skip(err)
		}
		if err != nil {
			k.t.Fatal(err)
		}
		k.open = append([]runner{r}, k.open...)
		return r
	}
	k.t.Fatalf("no part %q", name)
	return nil
}

// notify sends a notification about a flow of another proxy, and gives what the program counts.
func (k *inKernel) notify() translate.Counters {
	k.t.Helper()
	before := k.kernelCounters()
	be := binary.BigEndian
	f := append(append([]byte{}, k.mac...), 2, 0, 0, 0, 0, 9, 8, 0)
	ip := []byte{0x45, 0, 0, 44, 0, 1, 0x40, 0, 255, 17, 0, 0, 127, 0, 0, 9, 127, 0, 0, 1}
	sum := uint32(0)
	for i := 0; i < len(ip); i += 2 {
		sum += uint32(be.Uint16(ip[i:]))
	}
	be.PutUint16(ip[10:], ^uint16(sum>>16+sum&0xFFFF))
	f = append(f, ip...)
	f = be.AppendUint16(f, 49152)
	f = be.AppendUint16(f, 2021)
	f = append(f, 0, 24, 0, 0)
	f = append(f, 192, 0, 2, 7, 203, 0, 113, 7, 0xC3, 0x50, 0x12, 0xB7, 17, 0, 0, 5)
	if err := k.wire.Send(f); err != nil {
		k.t.Fatal(err)
	}
	var now translate.Counters
	testwait.Until(k.t, "the program counts the notification", func() bool {
		now = k.kernelCounters()
		return now != before
	})
	for o := range now.Outcomes {
		now.Outcomes[o] -= before.Outcomes[o]
	}
	for r := range now.Up {
		now.Up[r] -= before.Up[r]
	}
	return now
}

func (k *inKernel) kernelCounters() translate.Counters {
	k.t.Helper()
	c, err := k.program.Load().Counters()
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

// What a sender on this machine left to its device has no right checksum on a veth pair, and is translated all the same.
func TestTheHelpOfAWrongChecksumKnowsOffload(t *testing.T) {
	k := newInKernel(t)
	k.unit("translate:va")
	for _, c := range k.Daemon.Counters() {
		if c.GetName() == "kernel-passed-on{reason=checksum}" {
			if !strings.Contains(c.GetHelp(), "checksum offload") {
				t.Errorf("%q", c.GetHelp())
			}
			return
		}
	}
	t.Error("it is not counted")
}

func TestTheKernelTranslatorsObjectsHaveTheirNumbers(t *testing.T) {
	k := newInKernel(t)
	k.unit("translate:va")
	programs := 0
	for _, o := range k.kernelObjects() {
		if o.GetKind() == pncv1.HostObjectKind_HOST_OBJECT_KIND_BPF_PROGRAM {
			programs++
		}
		if !strings.HasPrefix(o.GetDetail(), "id ") || o.GetError() != "" {
			t.Errorf("%v", o)
		}
	}
	if programs != 1 {
		t.Errorf("%d programs", programs)
	}
}

// A part that is opened again after a reload is opened by what was reloaded, not by what it was first opened with.
func TestAnInterfaceThatIsOpenedAgainAcceptsWhatTheReloadSays(t *testing.T) {
	k := newInKernel(t)
	k.setEnabled(true)
	if err := k.unit("translate:va").Close(); err != nil {
		t.Fatal(err)
	}
	next := k.load("taps: [lo]", "taps: [lo]\n  accept_interfaces: [wa]")
	if err := k.parts.Load().apply(next, nil, k.Daemon.now()); err != nil {
		t.Fatal(err)
	}
	k.unit("translate:va")
	if c := k.notify(); c.Outcomes[pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_DOMAIN] != 1 {
		t.Errorf("by an interface that nothing is accepted by: %+v", c)
	}
	if err := k.parts.Load().apply(k.load(), nil, k.Daemon.now()); err != nil {
		t.Fatal(err)
	}
	if c := k.notify(); c.Outcomes[pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_PREFIX] != 1 {
		t.Errorf("by one of all interfaces: %+v", c)
	}
}

// A program that has half of its settings decides nothing more, whatever is switched on, and ends.
func TestAProgramThatCouldNotBeConfiguredStaysOffAndEnds(t *testing.T) {
	k := newInKernel(t)
	k.unit("translate:va")
	k.setEnabled(true)
	if c := k.notify(); c.Outcomes[pncv1.Outcome_OUTCOME_PROXY_NOT_OUR_PREFIX] != 1 {
		t.Fatalf("before: %+v", c)
	}
	bad := k.load()
	bad.Proxy.Pace.PerQP = 0
	if err := k.configure(bad.Proxy); err == nil {
		t.Fatal("no error")
	}
	k.setEnabled(true)
	if c := k.notify(); c.Up[translate.UpDisabled] != 1 {
		t.Errorf("after the error: %+v", c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Patience)
	defer cancel()
	if err := k.program.Load().Run(ctx); err == nil || !strings.Contains(err.Error(), "PerSecond") {
		t.Errorf("the program ends with %v", err)
	}
}

// Once nobody reads the program's decisions, user space decides, which records its own.
func TestAProgramWhoseRunHasEndedDecidesNothing(t *testing.T) {
	k := newInKernel(t)
	k.unit("translate:va")
	k.setEnabled(true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := k.program.Load().Run(ctx); err != nil {
		t.Fatal(err)
	}
	k.setEnabled(true)
	if c := k.notify(); c.Up[translate.UpDisabled] != 1 {
		t.Errorf("%+v", c)
	}
}
