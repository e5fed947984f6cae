// Checks the console of a sandbox with demo data: its size, each screen and dialog, the everyday tasks, and markup in data.
//
// A console with demo data that runs elsewhere can be checked too, such as one that `pnpm dev` serves:
//
//   echo '{"name": "console", "url": URL, "links": {"admin": LINK}, "port": PORT_OF_A_RECEIVER, "quick": true}' | node console.mjs
import { prepare } from './console/catalog.mjs';
import { checkFirstLoad } from './console/first_load.mjs';
import { checkMarkup } from './console/markup.mjs';
import { checkScreens } from './console/screens.mjs';
import { checkTasks } from './console/tasks.mjs';
import { drive } from './harness.mjs';

await drive([checkFirstLoad, checkScreens, checkTasks, checkMarkup], prepare);
