package kernel

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// DefaultPins is where the BPF filesystem is by custom, with a folder of pncd's own.
const DefaultPins = "/sys/fs/bpf/pncd"

// Errors of OpenPins, matched with errors.Is.
var (
	ErrNoBPFFS  = errors.New("no BPF filesystem is mounted there")
	ErrPinsHeld = errors.New("another pncd of this network namespace uses it")
)

// Pins is a folder of a BPF filesystem in which taps of one network namespace keep their maps and links, so that they go
// on without the process when that is killed, and the next one takes them over. In it, each version has a folder: of
// this program, with this layout and these sizes. Others are removed.
type Pins struct {
	dir     string
	lock    *os.File
	mu      sync.Mutex
	used    map[string]bool // versions that are open here
	removed []string        // versions that were found and not used
}

// OpenPins takes the folder of the calling thread's network namespace below root, which is on a BPF filesystem. Errors
// wrap ErrNoBPFFS, ErrPinsHeld and fs.ErrPermission.
func OpenPins(root string) (*Pins, error) {
	if err := onBPFFS(filepath.Dir(root)); err != nil {
		return nil, fmt.Errorf("%s: %w", root, err)
	}
	name, err := namespaceName()
	if err != nil {
		return nil, err
	}
	p := &Pins{dir: filepath.Join(root, name), used: map[string]bool{}}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	if p.lock, err = os.Open(p.dir); err != nil {
		return nil, err
	}
	if err := unix.Flock(int(p.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = p.lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrPinsHeld
		}
		return nil, fmt.Errorf("%s: %w", p.dir, err)
	}
	return p, nil
}

func onBPFFS(dir string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return err
	}
	if uint32(s.Type) != unix.BPF_FS_MAGIC {
		return ErrNoBPFFS
	}
	return nil
}

// namespaceName names the calling thread's network namespace by its cookie, which no other one has until the machine
// starts again.
func namespaceName() (string, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return "", fmt.Errorf("the network namespace's cookie (Linux 5.14): %w", err)
	}
	return fmt.Sprintf("netns-%d", cookie), nil
}

// Close gives the folder up, and removes it when nothing is in it.
func (p *Pins) Close() error {
	// In this order nobody else can have taken it meanwhile. It stays while something is pinned.
	err := os.Remove(p.dir)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if p.lock != nil {
		err = errors.Join(err, p.lock.Close())
	}
	return err
}

// Dir is the folder.
func (p *Pins) Dir() string { return p.dir }

// Replaced lists the versions that were found and removed since it was asked last.
func (p *Pins) Replaced() []string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.removed
	p.removed = nil
	return out
}

// version names what a tap's objects are for: nothing of another program, layout or size is taken over.
func version(c Config) string {
	h := sha256.New()
	h.Write(_LearnBytes)
	fmt.Fprintf(h, " %v %d %d %d %v %d %d", c.Mode, c.MaxFlows, c.MaxFlows6, c.RingSize, c.Interval, c.Tunnels, pairVersion)
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// take returns the folder of a version, made when it is not there, and removes those of others.
func (p *Pins) take(version string) (dir string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, err := os.ReadDir(p.dir)
	if err != nil {
		return "", err
	}
	for _, e := range all {
		if e.Name() == version || p.used[e.Name()] {
			continue
		}
		if err := clearPins(filepath.Join(p.dir, e.Name())); err != nil {
			return "", fmt.Errorf("remove what another version has pinned: %w", err)
		}
		p.removed = append(p.removed, e.Name())
	}
	dir = filepath.Join(p.dir, version)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	p.used[version] = true
	return dir, nil
}

// leave removes a version's folder with all that is in it.
func (p *Pins) leave(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, filepath.Base(dir))
	return clearPins(dir)
}

// clearPins removes a folder of pinned objects. The links first; and detached, for the kernel lets go of one without owner and
// pin a while later, which the next to attach would find in the way.
func clearPins(dir string) error {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, links := range []bool{true, false} {
		for _, e := range all {
			if strings.HasPrefix(e.Name(), linkPrefix) != links {
				continue
			}
			path := filepath.Join(dir, e.Name())
			if links {
				detachPinned(path)
			}
			err = errors.Join(err, os.Remove(path))
		}
	}
	return errors.Join(err, os.Remove(dir))
}

// detachPinned takes a pinned program off its interface. Who may not do so leaves that to the removal of the pin.
func detachPinned(path string) {
	l, err := link.LoadPinnedLink(path, nil)
	if err != nil {
		return
	}
	_ = l.Detach() // its interface may be gone
	_ = l.Close()
}

// Links are pinned as link-INDEX-SLOT: names of interfaces may have dots, which this filesystem does not allow.
const linkPrefix = "link-"

func linkPin(ifIndex int, slot uint32) string {
	return fmt.Sprintf("%s%d-%d", linkPrefix, ifIndex, slot)
}

func parseLinkPin(name string) (ifIndex int, slot uint32, ok bool) {
	rest, ok := strings.CutPrefix(name, linkPrefix)
	index, at, _ := strings.Cut(rest, "-")
	i, err1 := strconv.Atoi(index)
	s, err2 := strconv.ParseUint(at, 10, 32)
	return i, uint32(s), ok && err1 == nil && err2 == nil && s < slots
}

// pinnedLink is a link that an earlier process has left.
type pinnedLink struct {
	link link.Link
	slot uint32
}

// pinnedLinks reads the links of a version's folder by interface. Those that are on no interface any more are removed.
func pinnedLinks(dir string) (map[int]pinnedLink, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[int]pinnedLink{}
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), linkPrefix) {
			continue
		}
		i, slot, ok := parseLinkPin(e.Name())
		path := filepath.Join(dir, e.Name())
		l, err := link.LoadPinnedLink(path, nil)
		if err == nil && ok && (&linkHook{l}).check(i) == nil {
			out[i] = pinnedLink{l, slot}
			continue
		}
		if err == nil {
			_ = l.Close()
		}
		if err := os.Remove(path); err != nil {
			return out, err
		}
	}
	return out, nil
}
