package sim

import "github.com/softrnic/softrnic/verbs"

// An Endpoint is one end of a connection for Sim.Connect.
type Endpoint struct {
	Device *Device
	QP     verbs.QP

	// PSN is the first PSN that this end sends; 0 draws one.
	PSN uint32

	// Options are the options of this end.
	Options verbs.ConnectOptions

	// HideRecvBuffer hides the size of the receive buffer from the peer, which
	// then behaves as towards adapters other than softrnic.
	HideRecvBuffer bool

	// Selective offers selective retransmission.
	Selective bool
}

// Connect connects two RC or two UC queue pairs.
func (s *Sim) Connect(a, b Endpoint) error {
	ea, err := s.verbsEndpoint(a)
	if err != nil {
		return err
	}
	eb, err := s.verbsEndpoint(b)
	if err != nil {
		return err
	}
	if err := verbs.Connect(a.QP, ea, eb, a.Options); err != nil {
		return err
	}
	return verbs.Connect(b.QP, eb, ea, b.Options)
}

func (s *Sim) verbsEndpoint(e Endpoint) (verbs.Endpoint, error) {
	psn := e.PSN
	if psn == 0 {
		psn = s.Rand().Uint32N(1 << 24)
	}
	ep, err := verbs.LocalEndpoint(e.Device, e.QP, psn)
	ep.Selective = e.Selective
	if n := e.Options.MaxDestRdAtomic; n > 0 {
		ep.RdAtomic = uint8(n)
	}
	if e.HideRecvBuffer {
		ep.RecvBuffer = 0
	}
	return ep, err
}
