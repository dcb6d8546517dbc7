package bpftest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// IDs are the kernel's names of what a package has made, to see that it goes.
type IDs struct {
	Programs []ebpf.ProgramID
	Maps     []ebpf.MapID
	Links    []link.ID
}

// Add names a program with its maps, and its links. Errors as of the kernel.
func (i *IDs) Add(p *ebpf.Program, links ...link.Link) error {
	info, err := p.Info()
	if err != nil {
		return err
	}
	id, _ := info.ID()
	maps, _ := info.MapIDs()
	if id == 0 || len(maps) == 0 {
		return errors.New("the kernel does not name the program or its maps")
	}
	i.Programs, i.Maps = append(i.Programs, id), append(i.Maps, maps...)
	for _, l := range links {
		info, err := l.Info()
		if err != nil {
			return err
		}
		i.Links = append(i.Links, info.ID)
	}
	return nil
}

// Left says what of them is still there. The kernel frees programs and maps some time after their last owner has gone.
func (i *IDs) Left() string {
	var out []string
	note := func(what io.Closer, name string, err error) {
		switch {
		case err == nil:
			out = append(out, name)
			_ = what.Close()
		case !errors.Is(err, os.ErrNotExist):
			out = append(out, err.Error())
		}
	}
	for _, id := range i.Programs {
		p, err := ebpf.NewProgramFromID(id)
		note(p, fmt.Sprintf("program %d", id), err)
	}
	for _, id := range i.Maps {
		m, err := ebpf.NewMapFromID(id)
		note(m, fmt.Sprintf("map %d", id), err)
	}
	for _, id := range i.Links {
		l, err := link.NewFromID(id)
		note(l, fmt.Sprintf("link %d", id), err)
	}
	return strings.Join(out, ", ")
}
