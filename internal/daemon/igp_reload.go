package daemon

import (
	"context"
	"fmt"
	"slices"

	"pncd/internal/config"
)

// igpChange is what a reload changes of a running IGP.
type igpChange struct {
	part  *igpPart
	names []string                    // of its interfaces
	apply func(context.Context) error // to the speaker
}

// igpChanges reads what a configuration means to the IGPs that run. An error names what is wrong with it.
func (d *Daemon) igpChanges(next *config.Config) (out []igpChange, err error) {
	if d.isis != nil {
		c, err := d.isis.change(next, d.node)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	for _, p := range d.ospf {
		c, err := p.change(next)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// reconfigureIGPs applies what can change; next is the configuration that is in force already.
func (d *Daemon) reconfigureIGPs(ctx context.Context, old, next *config.Config, changes []igpChange) {
	for _, c := range changes {
		p := c.part
		if err := c.apply(ctx); err != nil {
			p.log.WithError(err).Error("the settings were not changed")
			continue
		}
		p.follow(c.names)
		if !slices.Equal(p.policy(old).accept, p.policy(next).accept) {
			if err := p.speaker.Replay(ctx); err != nil {
				p.log.WithError(err).Error("what was learned is not judged again")
			}
		}
	}
	if d.ospfapi != nil && !slices.Equal(old.OSPFAPI.AcceptProxies, next.OSPFAPI.AcceptProxies) {
		if err := d.ospfapi.Replay(ctx); err != nil {
			d.log.WithError(err).Error("ospfapi: what was learned is not judged again")
		}
	}
	d.attach.want(veths(next))
}

// fixed collects the keys of a section whose change needs a restart.
type fixed struct {
	section string
	keys    []string
}

// whole reports whether the section is there before and after a reload; to add or remove it needs a restart.
func (f *fixed) whole(was, is bool) bool {
	if was != is {
		f.keys = append(f.keys, f.section+": added or removed as a whole")
	}
	return was && is
}

// key compares a value with what it would become.
func (f *fixed) key(key string, was, is any) {
	if a, b := fmt.Sprint(was), fmt.Sprint(is); a != b {
		f.keys = append(f.keys, f.section+"."+key+": "+a+" -> "+b)
	}
}
