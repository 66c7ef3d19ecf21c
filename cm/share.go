package cm

import (
	"github.com/softrnic/softrnic/cm/internal/protocol"
	"github.com/softrnic/softrnic/internal/adapter"
	"github.com/softrnic/softrnic/verbs"
	"github.com/softrnic/softrnic/wire/mad"
)

// Devices of several processes may share an address. Requests go to the device whose manager has
// registered the service, and other messages to the device whose communication ID they name.

// sharedServices returns the services of an address that dev shares, nil if it shares none, and
// the prefix of communication IDs.
func sharedServices(dev verbs.Device) (s adapter.Services, prefix uint32, bits int) {
	if s = adapter.SharedServices(dev); s != nil {
		prefix, bits = s.IDPrefix()
	}
	return s, prefix, bits
}

// addToAddress records the manager at a shared address.
func (m *Manager) addToAddress() error {
	if m.services == nil {
		return nil
	}
	return m.services.AddManager()
}

// removeFromAddress removes the manager and its listeners from a shared address.
func (m *Manager) removeFromAddress() {
	if m.services == nil {
		return
	}
	m.mu.Lock()
	for id := range m.listeners {
		m.services.Unregister(uint64(id))
	}
	m.mu.Unlock()
	m.services.RemoveManager()
}

// startService makes the machine accept requests for a service, and makes them arrive here. It
// returns ErrInUse if this manager, or that of another device at the address, has the service.
// m.mu must be held, as in unregisterService.
func (m *Manager) startService(id mad.ServiceID, o protocol.ServiceOptions) error {
	if m.listeners[id] != nil {
		return ErrInUse
	}
	if m.services != nil {
		switch ok, err := m.services.Register(uint64(id)); {
		case err != nil:
			return err
		case !ok:
			return ErrInUse
		}
	}
	if !m.machine.Listen(id, o) {
		m.unregisterService(id)
		return ErrInUse
	}
	return nil
}

// unregisterService makes requests for a service no longer arrive here.
func (m *Manager) unregisterService(id mad.ServiceID) {
	if m.services != nil {
		m.services.Unregister(uint64(id))
	}
}
