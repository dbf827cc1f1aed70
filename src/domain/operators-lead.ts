/** How far above what it had the priority of work goes that an operator touches, unless the operator says otherwise. */
export const operatorsLead = 100;
