package daemon

import (
	"slices"

	pncv1 "pncd/api/pnc/v1"
	"pncd/dataplane/boundary"
	"pncd/proxyagent/evidence"
)

// objects lists what this pncd has in the kernel.
func (d *Daemon) objects() []*pncv1.HostObject {
	out := slices.Concat(d.boundaryObjects(), d.kernelObjects(), d.attach.objects())
	if l := d.parts.Load().learner; l != nil {
		out = append(out, l.objects()...)
	}
	for _, s := range d.units.statuses() {
		out = append(out, s.objects...)
	}
	return out
}

// hostChanged keeps a change that somebody else made to one of them.
func (d *Daemon) hostChanged(kind pncv1.HostObjectKind, name, change string, err error) {
	c := evidence.HostChange{At: d.now(), Kind: kind, Name: name, Change: change}
	if err != nil {
		c.Err = err.Error()
	}
	d.recorder.HostChanged(c)
}

// hostCounts are the counts of such changes by kind of object.
func (d *Daemon) hostCounts() (out []count) {
	for _, n := range d.recorder.HostChangeCounts() {
		label := [2]string{"kind", enumName(n.Kind.String(), "HOST_OBJECT_KIND_")}
		out = append(out,
			count{"host", "mended", "Times that somebody else's change of what pncd has in the kernel was undone.", n.Mended, label},
			count{"host", "failed", "Times that such a change could not be undone at once.", n.Failed, label})
	}
	return out
}

func (d *Daemon) boundaryChanged(c boundary.Change) {
	d.hostChanged(pncv1.HostObjectKind_HOST_OBJECT_KIND_NFT_TABLE, c.Table, c.What, c.Err)
}

func (d *Daemon) boundaryObjects() (out []*pncv1.HostObject) {
	s := d.boundary.Status()
	for _, name := range s.Tables {
		o := &pncv1.HostObject{Kind: pncv1.HostObjectKind_HOST_OBJECT_KIND_NFT_TABLE, Name: name, Detail: "border filter"}
		if s.Err != nil {
			o.Error = s.Err.Error()
		}
		out = append(out, o)
	}
	return out
}
