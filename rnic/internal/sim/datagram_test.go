package sim_test

import (
	"github.com/softrnic/softrnic/verbs"
)

// datagrams creates a UD queue pair.
func (w *world) datagrams(on *host) {
	h := w.newQPProgram(on, verbs.UD, nil)
	w.must(verbs.ActivateUD(h.qp, h.qkey, w.rand.Uint32N(1<<24)))
	w.loose = append(w.loose, h)
}

// composeDatagram draws a SEND to any of the UD queue pairs, sometimes with an invalid Q_Key.
func (h *qpProgram) composeDatagram() (wr verbs.SendWR, r *request) {
	w := h.world
	to := pick(w, w.loose...)
	wr.Opcode = pick(w, verbs.WRSend, verbs.WRSendWithImm)
	wr.AH = h.handle(to.host)
	wr.RemoteQPN, wr.RemoteQKey = to.qp.Num(), to.qkey
	m := &message{from: h.host, qpn: h.qp.Num(), length: min(maxDatagram, w.length(1024, maxDatagram))}
	h.fill(&wr, m)
	if w.chance(10) {
		wr.RemoteQKey += 8
	} else {
		to.coming = append(to.coming, m)
	}
	return wr, &request{op: wr.Opcode, msg: m}
}

// handle returns an address handle for a host.
func (h *qpProgram) handle(to *host) verbs.AH {
	for _, ah := range h.ahs {
		if ah.Attr().DGID == to.dev.AddressVector().DGID && ah.Attr().UDPPort == to.dev.AddressVector().UDPPort {
			return ah
		}
	}
	ah, err := h.host.pd.CreateAH(to.dev.AddressVector())
	h.world.must(err)
	h.ahs = append(h.ahs, ah)
	return ah
}
