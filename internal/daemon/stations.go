package daemon

import (
	pncv1 "pncd/api/pnc/v1"
)

// stationParts tells which BMP stations are connected. None of them is needed for the node to do its part, so they
// don't count for Ready.
func (d *Daemon) stationParts() (out []*pncv1.Part) {
	if d.speaker == nil {
		return nil
	}
	for _, s := range d.speaker.Stations() {
		p := &pncv1.Part{Name: "bmp:" + s.Address.String(), State: pncv1.PartState_PART_STATE_READY, Detail: "connected"}
		switch {
		case s.Connected:
		case s.LastError != "":
			p.State, p.Detail = pncv1.PartState_PART_STATE_FAILED, s.LastError
		default:
			p.State, p.Detail = pncv1.PartState_PART_STATE_STARTING, "connecting"
		}
		out = append(out, p)
	}
	return out
}

func (d *Daemon) stationCounts() (out []count) {
	if d.speaker == nil {
		return nil
	}
	for _, s := range d.speaker.Stations() {
		label := [2]string{"station", s.Address.String()}
		connected := uint64(0)
		if s.Connected {
			connected = 1
		}
		out = append(out,
			count{"bmp", "connects", "Connections with a BMP station.", s.Connects, label},
			count{"bmp", "disconnects", "Connections with a BMP station that ended; connects less this is 1 while it is connected.", s.Connects - connected, label},
			count{"bmp", "messages", "BMP messages passed on to a station.", s.Messages, label},
			count{"bmp", "dropped", "BMP messages that were not passed on: about a neighbour that is not known, or of an unknown type.", s.Dropped, label},
			count{"bmp", "broken", "Connections ended by a BMP message of the engine that broke the framing.", s.Broken, label},
			count{"bmp", "slow", "Connections ended because the station did not read fast enough; everything is sent again.", s.Slow, label})
	}
	return out
}
