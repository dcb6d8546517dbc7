package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
)

// DefaultStateDir holds one state file for each lab that is up, so that any later start finds what a
// killed one left.
const DefaultStateDir = "/run/pncd-lab"

// State is what a state file says of a lab.
type State struct {
	Lab        string    `json:"lab"`
	File       string    `json:"file,omitempty"` // the topology's
	Owner      Ident     `json:"owner"`
	Ready      bool      `json:"ready"`
	StartedAt  time.Time `json:"started_at"`
	Dir        string    `json:"dir,omitempty"`
	Temporary  []string  `json:"temporary,omitempty"` // folders that go with the lab
	Namespaces []string  `json:"namespaces"`
	Holders    []Ident   `json:"holders"`
	Processes  []Ident   `json:"processes"`
}

// Ident names a process beyond the reuse of its pid.
type Ident struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // field 22 of /proc/<pid>/stat, clock ticks since boot
	MntNS string `json:"mntns,omitempty"`
}

// Alive tells whether that very process is still there.
func (i Ident) Alive() bool {
	s, err := startTime(i.PID)
	return err == nil && s == i.Start && !isZombie(i.PID)
}

// stateFile is the state of a lab that this process owns.
type stateFile struct {
	mu   sync.Mutex
	path string
	s    State
}

// lock serialises claims and recoveries of all labs on the machine. It is a flock on the folder, so
// that it ends with the process.
func lock(dir string) (func(), error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make state folder: %w", err)
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open state folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock state folder: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

func stateDir(dir string) string {
	if dir == "" {
		return DefaultStateDir
	}
	return dir
}

// runRoot holds the nodes' /run of a lab.
func runRoot(dir, lab string) string { return filepath.Join(stateDir(dir), lab) }

// claim makes the state file before anything else is made, with every name that may come to be.
func claim(dir, lab, file string, namespaces []string) (*stateFile, error) {
	dir = stateDir(dir)
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	path := filepath.Join(dir, lab+".json")
	if s, err := readState(path); err == nil && s.Owner.Alive() {
		return nil, fmt.Errorf("lab %s is up already (pid %d): take it down with `pnclab lab down %s`", lab, s.Owner.PID, lab)
	}
	// Taking a lab down deletes its namespaces by name: they must be its own.
	for _, name := range namespaces {
		if _, err := os.Lstat(filepath.Join(namespaceDir, name)); err == nil {
			return nil, fmt.Errorf("lab %s needs the network namespace %s, which is there already: of another lab (`pnclab lab list`), or to be deleted with `ip netns del %s`", lab, name, name)
		}
	}
	if err := shareNamespaceDir(); err != nil {
		return nil, err
	}
	start, err := startTime(os.Getpid())
	if err != nil {
		return nil, err
	}
	f := &stateFile{path: path, s: State{
		Lab: lab, File: file, Owner: Ident{PID: os.Getpid(), Start: start}, StartedAt: time.Now().UTC(), Namespaces: namespaces,
	}}
	return f, f.write()
}

// unfinished ends the name of a state file that is being written.
const unfinished = ".tmp"

// write replaces the file as a whole.
func (f *stateFile) write() error {
	b, err := json.MarshalIndent(f.s, "", "  ")
	if err != nil {
		return err
	}
	tmp := f.path + unfinished
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("write lab state: %w", err)
	}
	if err := os.Rename(tmp, f.path); err != nil {
		return fmt.Errorf("write lab state: %w", err)
	}
	return nil
}

func (f *stateFile) addHolder(h *holder) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.s.Holders = append(f.s.Holders, Ident{PID: h.pid, Start: h.start, MntNS: h.mntns})
	return f.write()
}

func (f *stateFile) addProcess(pid int, start uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.s.Processes = append(f.s.Processes, Ident{PID: pid, Start: start})
	return f.write()
}

func (f *stateFile) markReady() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.s.Ready = true
	return f.write()
}

func (f *stateFile) setDirs(dir string, temporary []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.s.Dir, f.s.Temporary = dir, temporary
	return f.write()
}

func (f *stateFile) temporary() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.s.Temporary
}

func (f *stateFile) remove() error { return removeFile(f.path) }

func readState(path string) (State, error) {
	var s State
	b, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Labs lists the state of all labs on this machine, dead ones included.
func Labs(dir string) ([]State, error) {
	paths, err := filepath.Glob(filepath.Join(stateDir(dir), "*.json"))
	if err != nil {
		return nil, err
	}
	var all []State
	for _, p := range paths {
		s, err := readState(p)
		if errors.Is(err, os.ErrNotExist) {
			continue // taken down meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Recover removes what labs left whose owner was killed: processes that are still the ones in the
// state file or in a holder's mount namespace, then namespaces (links go with them), then the file.
func Recover(dir string, log logrus.FieldLogger) error {
	dir = stateDir(dir)
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	states, err := Labs(dir)
	if err != nil {
		return err
	}
	errs := []error{removeUnfinished(dir)}
	for _, s := range states {
		if s.Owner.Alive() {
			continue
		}
		log.WithField("lab", s.Lab).Info("removing what a killed lab left")
		errs = append(errs, recoverOne(dir, s))
	}
	return errors.Join(errs...)
}

// removeUnfinished removes the states that a kill left half-written before the lab had any. Those of a lab that
// has one go with it.
func removeUnfinished(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"+unfinished))
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range paths {
		if _, err := os.Lstat(strings.TrimSuffix(p, unfinished)); errors.Is(err, os.ErrNotExist) {
			errs = append(errs, removeFile(p)) // no claim is under way: we have the lock
		}
	}
	return errors.Join(errs...)
}

// removeFile removes a file; one that is not there is no error.
func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove lab state: %w", err)
	}
	return nil
}

func recoverOne(dir string, s State) error {
	// A mount namespace's inode may have been given to another one since: a process counts as the lab's
	// only when its network namespace is one of the lab's names too.
	for _, p := range s.Processes {
		if p.Start != 0 && p.Alive() {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	for _, h := range s.Holders {
		for _, pid := range inMountNamespace(h.MntNS) {
			if inNamespaces(pid, s.Namespaces) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	errs := []error{deleteNamespaces(s.Namespaces), os.RemoveAll(runRoot(dir, s.Lab))}
	for _, dir := range s.Temporary {
		errs = append(errs, os.RemoveAll(dir))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	path := filepath.Join(dir, s.Lab+".json")
	return errors.Join(removeFile(path+unfinished), removeFile(path))
}

// inNamespaces tells whether the process's network namespace is one of the named ones.
func inNamespaces(pid int, names []string) bool {
	var ps, ns syscall.Stat_t
	if err := syscall.Stat(fmt.Sprintf("/proc/%d/ns/net", pid), &ps); err != nil {
		return false
	}
	for _, name := range names {
		if err := syscall.Stat(filepath.Join(namespaceDir, name), &ns); err == nil && ns.Ino == ps.Ino && ns.Dev == ps.Dev {
			return true
		}
	}
	return false
}
