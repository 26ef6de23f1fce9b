// Package again lets a suspend.Source run user code, or other code that must not run under a guard, to decide whether
// an operation has to wait. Such code runs in a separate step, Prepare.
package again

import "errors"

// Err is the error with which a Preparer makes package suspend call Prepare and Try again.
var Err = errors.New("suspend: look again")

// A Preparer is a suspend.Source with three more methods.
//
// Prepare is called under no guard before Try, by the task that performs the operation or on the executor of a Then.
// Prepare must not suspend. If Try returns false, it may be called a second time without another Prepare.
//
// Try returns (v, true, Err) if the result of Prepare is stale. A waiting Preparer is resumed with Err when Try might
// succeed. In both situations, all cases of a Select are prepared and tried again, and none has been performed.
//
// Settle is called after the operation has been performed and before its result is returned. It is called by the task
// that performed the operation, or on the executor of a Then. Settle may call user code, and may panic.
//
// Drop is called under no guard when the operation ends without being performed: another case was performed, the wait
// failed, or a Prepare panicked. Drop may also be called between a Try and the next Prepare. After a Drop, the Preparer
// must not keep the result of Prepare. If the context ends just after such a Drop, Drop is called once more without a
// Prepare in between, and must then do nothing.
type Preparer interface {
	Prepare()
	Settle()
	Drop()
}

// A Maker is a suspend.Source of which an Op calls only the method Anew. Anew returns a new Preparer for each
// Case, each Do and each Then. S is the type suspend.Source, which this package cannot import.
type Maker[S any] interface{ Anew() S }
