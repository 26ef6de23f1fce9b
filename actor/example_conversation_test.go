package actor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
)

// A page is a request of a user's browser, answered with the next page.
type page struct {
	actor.Request[string]
	form string
}

// A conversation of a web application, one actor for each user. The program reads from top to bottom, over several requests. Between
// two of them the user may take an hour, and the actor has neither a task nor a stack. If the user stays away, it ends.
func Example_conversation() {
	conversation := func(_ context.Context, self *actor.Self[*page]) error {
		// show answers the request in hand, waits for the next one, and goes on with it.
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
							return ask(p) // the same page again
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
		user := actor.Spawn(ctx, suspendHere(), conversation, actor.Options[*page]{})
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
