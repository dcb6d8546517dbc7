package bed

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"pncd/integration/lab"
	"pncd/internal/labtraffic"
)

// files are the topology and what it binds.
//
//go:embed path.clab.yml *.conf *.yaml
var files embed.FS

// Names of the nodes in the topology.
const (
	Sender     = "sender"
	Router     = "proxy"      // the proxy's FRR
	Proxy      = "proxy-pncd" // pncd beside it, in the same network namespace
	Reflector  = "reflector"
	Congestion = "congestion"
	Receiver   = "receiver"
)

// AS is the one AS of the lab.
const AS = 65000

// Plan is the address plan of one family.
type Plan struct {
	Family       int
	SenderPrefix netip.Prefix
	Sender       netip.Addr
	Receiver     netip.Addr
	Router       netip.Addr // the proxy router's loopback: the routes' next hop
	Proxy        netip.Addr // pncd's address there: the PNC
	Reflector    netip.Addr
	Congestion   netip.Addr
}

// PlanFor is the plan of family 4 or 6.
func PlanFor(family int) Plan {
	addr := netip.MustParseAddr
	if family == 6 {
		return Plan{6, netip.MustParsePrefix("fd00:1::/64"), addr("fd00:1::2"), addr("fd00:2::2"),
			addr("fd00:255::1"), addr("fd00:255::11"), addr("fd00:255::2"), addr("fd00:255::3")}
	}
	return Plan{4, netip.MustParsePrefix("10.1.0.0/24"), addr("10.1.0.2"), addr("10.2.0.2"),
		addr("10.255.0.1"), addr("10.255.0.11"), addr("10.255.0.2"), addr("10.255.0.3")}
}

// Options of a Bed.
type Options struct {
	Dir       string            // of the lab; a temporary folder when empty
	RemoveDir bool              // remove a temporary one at Down
	Pncd      string            // path of pncd; looked for when empty
	Unique    bool              // so that several run at once
	Edit      map[string]string // file -> its whole new text
	StateDir  string
	Log       logrus.FieldLogger
}

// Bed is the lab, up.
type Bed struct {
	*lab.Lab
	Proxy, Congestion *Node
	files             string // folder of topology and configurations
}

// beds numbers the unique labs of this process, which run beside each other.
var beds atomic.Uint32

// Up writes the files, starts the lab and connects to both pncd. Down must be called.
func Up(ctx context.Context, opt Options) (*Bed, error) {
	dir, err := os.MkdirTemp("", "pncd-bed-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the topology: %w", err)
	}
	b := &Bed{files: dir}
	if err := b.up(ctx, opt); err != nil {
		return nil, errors.Join(err, b.Down())
	}
	return b, nil
}

func (b *Bed) up(ctx context.Context, opt Options) error {
	if err := b.write(opt.Edit); err != nil {
		return err
	}
	topo, err := lab.Load(filepath.Join(b.files, "path.clab.yml"))
	if err != nil {
		return err
	}
	lopt := lab.Options{Temporary: []string{b.files}, Unique: opt.Unique, Dir: opt.Dir, RemoveDir: opt.RemoveDir, StateDir: opt.StateDir, Log: opt.Log}
	if opt.Pncd != "" {
		lopt.Programs = map[string]string{"pncd": opt.Pncd}
	}
	if opt.Unique {
		topo.Name += strconv.FormatUint(uint64(beds.Add(1)), 10)
	}
	if b.Lab, err = lab.Up(ctx, topo, lopt); err != nil {
		return err
	}
	if err := b.sendNHC(ctx); err != nil {
		return err
	}
	if b.Proxy, err = b.dial(ctx, Proxy); err != nil {
		return err
	}
	b.Congestion, err = b.dial(ctx, Congestion)
	return err
}

func (b *Bed) write(edit map[string]string) error {
	entries, err := files.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			return err
		}
		if t, ok := edit[e.Name()]; ok {
			text = []byte(t)
		}
		if err := os.WriteFile(filepath.Join(b.files, e.Name()), text, 0o644); err != nil {
			return fmt.Errorf("write the topology: %w", err)
		}
	}
	return nil
}

// File is the text of one of the lab's files, to be edited and given back in Options.
func File(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the files are part of the program
	}
	return string(b)
}

// ConfigPath is where a running lab's file is on this machine: a change is seen in the node.
func (b *Bed) ConfigPath(name string) string { return filepath.Join(b.files, name) }

// Down closes the connections and takes the lab down.
func (b *Bed) Down() error {
	var errs []error
	for _, n := range []*Node{b.Proxy, b.Congestion} {
		if n != nil {
			errs = append(errs, n.Close())
		}
	}
	if b.Lab != nil {
		errs = append(errs, b.Lab.Down())
	}
	return errors.Join(append(errs, os.RemoveAll(b.files))...)
}

// Host is the sender or the receiver as an end of traffic.
func (b *Bed) Host(node string, a netip.Addr) labtraffic.Host {
	return labtraffic.Host{Netns: b.Namespace(node), Addr: a}
}

// WatchCNPs opens the interface of the sender or of the receiver.
func (b *Bed) WatchCNPs(node string) (*labtraffic.Watcher, error) {
	return labtraffic.NewWatcher(b.Namespace(node), "eth1")
}

// markRules sets CE on RoCEv2 that leaves the congestion node, as a congested queue with ECN does. The ICRC
// leaves the field out. A table for each interface, so that each can be marked alone.
const markRules = `nft -f - <<END
table netdev congestion-$1 {
  chain egress {
    type filter hook egress device "$1" priority 0
    ip version 4 udp dport 4791 ip ecn set ce
    ip6 version 6 udp dport 4791 ip6 ecn set ce
  }
}
END`

// Mark switches the marking on the congestion node's link to the receiver on or off.
func (b *Bed) Mark(ctx context.Context, on bool) error { return b.MarkLink(ctx, "eth2", on) }

// MarkLink does so on any of its links: eth1 leads to the route reflector.
func (b *Bed) MarkLink(ctx context.Context, iface string, on bool) error {
	argv := []string{"nft", "delete", "table", "netdev", "congestion-" + iface}
	if on {
		argv = []string{"sh", "-c", markRules, "sh", iface}
	}
	_, err := b.Exec(ctx, Congestion, argv...)
	return err
}

// Wait is WaitFor with a bound of its own.
func (b *Bed) Wait(ctx context.Context, d time.Duration, cond func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return b.WaitFor(ctx, cond)
}
