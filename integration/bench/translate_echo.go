package bench

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"pncd/dataplane/emit"
	"pncd/proxyagent/translator"
)

// echoHandler answers each datagram with its payload: the least that a UDP service behind the same socket
// code can do.
type echoHandler struct {
	sender   *emit.Sender
	answered atomic.Uint64
	buffers  [translator.MaxBatch][128]byte
	packets  [][]byte
	id       uint16
}

// Process answers a batch.
func (e *echoHandler) Process(batch []translator.Datagram, _ time.Time) {
	e.packets = e.packets[:0]
	for i := range batch {
		e.packets = append(e.packets, e.reply(e.buffers[i][:0], &batch[i]))
	}
	n, _ := e.sender.Send(e.packets) // what was not sent is not counted
	e.answered.Add(uint64(n))
}

// Discard and Lost count nothing.
func (e *echoHandler) Discard([]translator.Datagram, time.Time) {}

// Lost is not answered.
func (e *echoHandler) Lost(translator.Loss, time.Time) {}

// reply is a whole IPv4 packet without UDP checksum; the kernel fills in the header's (raw(7)).
func (e *echoHandler) reply(b []byte, d *translator.Datagram) []byte {
	const ipLen, udpLen, dontFragment = 20, 8, 0x4000
	e.id++
	src, dst := d.To.As4(), d.From.Addr().As4()
	be := binary.BigEndian
	b = append(b, 0x45, 0)
	b = be.AppendUint16(b, uint16(ipLen+udpLen+len(d.Payload)))
	b = be.AppendUint16(b, max(e.id, 1))
	b = be.AppendUint16(b, dontFragment)
	b = append(b, 64, 17, 0, 0)
	b = append(append(b, src[:]...), dst[:]...)
	b = be.AppendUint16(b, translatePort)
	b = be.AppendUint16(b, d.From.Port())
	b = be.AppendUint16(b, uint16(udpLen+len(d.Payload)))
	b = append(b, 0, 0)
	return append(b, d.Payload...)
}
