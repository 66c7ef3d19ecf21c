package sim

import "github.com/softrnic/softrnic/verbs"

// End is one end of a connection to be.
type End struct {
	Device *Device
	QP     verbs.QP

	// PSN is the first that this end sends; 0 draws one.
	PSN uint32

	// Options are this end's choices.
	Options verbs.ConnectOptions

	// Stranger keeps the size of the receive buffer from the peer: it then
	// behaves as towards adapters that are not softrnic.
	Stranger bool
}

// Connect connects two RC or two UC queue pairs.
func (s *Sim) Connect(a, b End) error {
	ea, err := s.endpoint(a)
	if err != nil {
		return err
	}
	eb, err := s.endpoint(b)
	if err != nil {
		return err
	}
	if err := verbs.Connect(a.QP, ea, eb, a.Options); err != nil {
		return err
	}
	return verbs.Connect(b.QP, eb, ea, b.Options)
}

func (s *Sim) endpoint(e End) (verbs.Endpoint, error) {
	psn := e.PSN
	if psn == 0 {
		psn = s.Rand().Uint32N(1 << 24)
	}
	ep, err := verbs.LocalEndpoint(e.Device, e.QP, psn)
	if e.Stranger {
		ep.RecvBuffer = 0
	}
	return ep, err
}
