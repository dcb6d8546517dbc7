package kerneltest

import (
	"encoding/binary"

	"pncd/dataplane/roce"
)

// kind is what a packet of RC or UC is.
type kind uint8

const (
	other kind = iota
	request
	middle
	readRequest
	response
	respMiddle
)

func kindOf(p *roce.Packet) kind {
	t := p.BTH.Opcode.Transport()
	if t != roce.TransportRC && t != roce.TransportUC {
		return other
	}
	op := p.BTH.Opcode.Op()
	if t == roce.TransportUC && op > 0x0B {
		return other
	}
	switch op {
	case 0x01, 0x07:
		return middle
	case 0x0C:
		return readRequest
	case 0x0E:
		return respMiddle
	case 0x0D, 0x0F, 0x10, 0x11, 0x12:
		return response
	case 0x13, 0x14, 0x16, 0x17, 0x1C, 0x1D:
		return request
	}
	if op <= 0x0B {
		return request
	}
	return other
}

func psnDiff(a, b uint32) int32 { return int32((a-b)<<8) >> 8 }

// follow moves the flow on and says whether the packet fits what came before.
func (f *Flow) follow(p *roce.Packet, k kind, now int64) bool {
	switch k {
	case request, middle, readRequest:
		return f.followRequest(p, k)
	case response, respMiddle:
		return f.followResponse(p, k, now)
	}
	if p.BTH.Opcode.Transport() == roce.TransportUD {
		return f.followUD(p)
	}
	return true
}

func (f *Flow) followRequest(p *roce.Packet, k kind) bool {
	readLen := uint32(0)
	if k == readRequest {
		if len(p.Body) < 16 {
			return true
		}
		readLen = binary.BigEndian.Uint32(p.Body[12:])
	}
	d := psnDiff(p.BTH.PSN, f.ReqHigh)
	ahead := int32(reqAhead)
	if f.ReadLen != 0 {
		if f.ReadLen < 1<<30 {
			ahead += int32(f.ReadLen / readMTU)
		} else {
			ahead += 1 << 22
		}
	}
	fits := f.HasReq && d <= ahead && d >= -psnBack
	if !f.HasReq || d > 0 || d < -reqAhead {
		f.ReqHigh, f.ReadLen, f.HasReq = p.BTH.PSN, readLen, true
	}
	return fits
}

func (f *Flow) followResponse(p *roce.Packet, k kind, now int64) bool {
	fits := true
	if k == response {
		if len(p.Body) < 4 {
			return true
		}
		msn := binary.BigEndian.Uint32(p.Body) & 0xFFFFFF
		d := psnDiff(msn, f.MSN)
		if !f.HasMSN || d < -msnBack && msn < msnLow {
			fits = false
		}
		if !fits || d > 0 {
			f.MSN = msn
		}
		f.HasMSN = true
	}
	d := psnDiff(p.BTH.PSN, f.RespHigh)
	if !f.HasResp || d > respAhead || d < -respBack || d < -psnBack && now-f.LastSeen >= idle {
		fits = false
	}
	if !f.HasResp || d > 0 || d < -respBack {
		f.RespHigh, f.HasResp = p.BTH.PSN, true
	}
	return fits
}

func (f *Flow) followUD(p *roce.Packet) bool {
	if len(p.Body) < 8 {
		return true
	}
	source := binary.BigEndian.Uint32(p.Body[4:]) & 0xFFFFFF
	fits := f.HasReq && source == f.ReqHigh
	f.ReqHigh, f.HasReq = source, true
	return fits
}
