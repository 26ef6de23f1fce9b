package actor_test

import (
	"context"
	"fmt"
	"github.com/braidgo/braid/suspend"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
)

// A page is a request of a user's browser. The reply is the next page.
type page struct {
	actor.Request[string]
	form string
}

// A web application has a conversation with each user, in an actor of its own. The program reads from top to bottom, although it
// handles several requests. Between two requests the user may take an hour, and the actor has neither a task nor a stack. If the
// user does not return, the actor ends.
func Example_conversation() {
	conversation := func(_ context.Context, self *actor.Self[*page]) error {
		// show replies to the current request, waits for the next one, and passes it to then.
		show := func(p *page, html string, then func(p *page) error) error {
			p.Reply(html)
			return self.ReactWithin(time.Hour, then, func() error {
				fmt.Println("the user has left")
				return nil
			})
		}
		return self.React(func(p *page) error {
			return show(p, "name?", func(p *page) error {
				name := p.form
				tries := 0
				var ask func(p *page) error
				ask = func(p *page) error {
					tries++
					return show(p, name+", your age?", func(p *page) error {
						if p.form == "" && tries < 3 {
							return ask(p) // shows the same page again
						}
						return show(p, fmt.Sprintf("thanks, %s of %s", name, p.form), func(p *page) error {
							p.Reply("the end")
							return nil
						})
					})
				}
				return ask(p)
			})
		})
	}

	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		user := actor.Spawn(ctx, suspend.Here(), conversation, actor.Options[*page]{})
		for _, form := range []string{"", "Ada", "", "36", "ok"} {
			html, err := actor.Ask(ctx, user, &page{form: form})
			fmt.Println(html, err)
		}
		return user.Wait(ctx)
	})
	// Output:
	// name? <nil>
	// Ada, your age? <nil>
	// Ada, your age? <nil>
	// thanks, Ada of 36 <nil>
	// the end <nil>
}
