// Package match finds the receive for a message, and the message for a receive,
// by MPI's rules (MPI 4.1, 3.5): a message goes to the first receive that takes
// it, and a receive takes the first message that there is for it.
//
//	var receives match.Queue[*Request]
//	receives.Push(&r.node)                         // r.node.Envelope may have Any in it
//	if n := receives.Receive(message); n != nil {  // the first that takes it
//		receives.Remove(n)
//	}
//
// Both are found in constant time as long as no Any is involved. A message is
// compared with the receives with Any that were begun before its other candidate,
// and a receive with Any with all messages that came before the one it takes.
package match
