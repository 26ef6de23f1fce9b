// Package again is what package stm needs of package suspend beyond a suspend.Source: an operation that must run code of users to
// decide whether it waits. Such a function must not run under a guard.
package again

import "errors"

// Err is how a Preparer says that the operation has to be prepared and looked at again.
var Err = errors.New("suspend: look again")

// A Preparer is a suspend.Source with three methods more. Prepare is called under no guard, by the task that performs the
// operation, or on the executor of a Then, before each look; it must not suspend. Try may be called twice after one Prepare, if it
// reports false the first time.
//
// Try returns (v, true, Err) if what Prepare has found out is stale by now. A Preparer that waits is resumed with Err when it is
// worth another look. Either way all cases of a Select are prepared and looked at again, and nothing has happened.
//
// Settle is called once the operation has been performed, by the task that has performed it, or on the executor of a Then, before the
// result is returned. It may call code of users, and it may panic.
//
// Drop is called under no guard when the operation is over and was not performed: another case was, or the wait has failed,
// or a Prepare has panicked. It may also come between two looks. The Preparer then keeps nothing of what Prepare has found out. If the
// context is done just after a Drop between two looks, the last one comes without a Prepare since, and finds nothing to drop.
type Preparer interface {
	Prepare()
	Settle()
	Drop()
}

// A Maker is a suspend.Source that suspend.OpOf makes no use of but Anew, which makes a Preparer for each Case, each Do and each Then. S is
// the suspend.Source.
type Maker[S any] interface{ Anew() S }
