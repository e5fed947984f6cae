// The steps of a task: clicking and typing only, or the keyboard only, counted as interactions.
import { loaded } from './session.mjs';

/** More presses of Tab than any screen needs to reach a control. */
const MAX_TABS = 250;

/** Returns what a task may do. With the keyboard, a control is reached by Tab and opened by Enter. */
export function stepsOf(page, keyboard) {
  let interactions = 0;
  async function reach(locator) {
    await locator.waitFor();
    for (let presses = 0; presses < MAX_TABS; presses += 1) {
      if (await locator.evaluate((element) => element === document.activeElement)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not reach ${locator}`);
  }
  /** Clicks a control, or presses Enter on it. */
  async function open(locator) {
    interactions += 1;
    if (keyboard) {
      await reach(locator);
      await page.keyboard.press('Enter');
    } else {
      await locator.click();
    }
    await loaded(page);
  }
  return {
    count: () => interactions,
    open,
    /** Presses the button of the open dialog, which then closes and leaves the focus on its notice. */
    async submit(name) {
      const dialog = page.getByRole('dialog');
      await dialog.getByRole('button', { name, exact: true, disabled: false }).waitFor();
      await open(dialog.getByRole('button', { name, exact: true }));
      await dialog.waitFor({ state: 'hidden' });
      await page.locator('[role=status]:focus').waitFor();
      await loaded(page);
    },
    /** Chooses an option of a select, by typing its label with the keyboard. */
    async choose(locator, value) {
      interactions += 1;
      if (keyboard) {
        await reach(locator);
        await page.keyboard.type(value);
      } else {
        await locator.selectOption(value);
      }
    },
    async type(locator, text) {
      interactions += 1;
      if (keyboard) await reach(locator);
      else await locator.click();
      await page.keyboard.type(text);
    },
    /** Opens the search, types, and opens the first result: three interactions. */
    async find(text) {
      interactions += 3;
      if (keyboard) await page.keyboard.press('/');
      else await page.getByRole('button', { name: /Find anything/ }).click();
      await page.getByRole('combobox').waitFor();
      await page.keyboard.type(text);
      const result = page.getByRole('option', { name: text }).first();
      await result.waitFor();
      if (keyboard) await page.keyboard.press('Enter');
      else await result.click();
      await page.getByRole('dialog').waitFor({ state: 'hidden' });
      await loaded(page);
    },
  };
}
