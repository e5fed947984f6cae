// Uses the generated types: compiles only if enums, pages and problems have names.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

const api = createClient<paths>({ baseUrl: "http://127.0.0.1:8080", headers: { "client-id": "prn_sk_…" } });

export async function listPlans(): Promise<Schemas["Plan"][]> {
  const { data, error } = await api.GET("/subscription-plans", { params: { query: { limit: 5, sort: "-tier" } } });
  if (error) {
    const code: Schemas["ProblemCode"] = error.code;
    throw new Error(code);
  }
  const page: Schemas["PlanPage"] = data;
  return page.data;
}

export async function subscribe(user: string, plan: string): Promise<Schemas["SubscriptionStatus"] | undefined> {
  const { data } = await api.POST("/subscriptions", {
    params: { header: { "Idempotency-Key": "5f0c9a52" } },
    body: { user_id: user, subscription_plan_id: plan, status: "active", price: "19.99" },
  });
  return data?.status;
}
